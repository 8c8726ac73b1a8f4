"""`Event`: one stage of one request in its serialized form; and the line of the log format `legacy`.

Upstream: k8s.io/apiserver/pkg/apis/audit/v1/types.go, pkg/audit/format.go
"""

from __future__ import annotations

import time
from typing import Final

import orjson

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.json import cleaned, go_escaped
from tetrapod.machinery.timestamps import format_seconds

API_VERSION: Final = "audit.k8s.io/v1"
_HEAD: Final = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",'


class Event:
    """An audit event.

    `document` is the event without kind and apiVersion, because items of a list have none. Its requestObject and
    responseObject are encoded JSON (`orjson.Fragment`), to save memory.
    """

    __slots__ = ("_encoded", "document")

    def __init__(self, document: Object) -> None:
        self.document = document
        self._encoded = b""

    def item(self) -> bytes:
        """Return the JSON of the event as an item of an EventList, without kind and apiVersion. It is encoded once."""
        if not self._encoded:
            try:
                encoded = orjson.dumps(self.document)
            except orjson.JSONEncodeError:  # a string that is not valid UTF-8
                encoded = orjson.dumps(
                    {key: v if isinstance(v, orjson.Fragment) else cleaned(v) for key, v in self.document.items()}
                )
            self._encoded = go_escaped(encoded)
        return self._encoded

    def line(self) -> bytes:
        """Return the JSON of the event as a line of the log, with kind, apiVersion and a newline."""
        return _HEAD + self.item()[1:] + b"\n"

    def without_objects(self) -> Event:
        """Return a copy of the event without requestObject and responseObject, annotated as truncated."""
        document = {
            key: value for key, value in self.document.items() if key not in ("requestObject", "responseObject")
        }
        document["annotations"] = {**document.get("annotations", {}), "audit.k8s.io/truncated": "true"}
        return Event(document)


def micro_time(seconds: float) -> str:
    """Format a Unix time as metav1.MicroTime does: RFC 3339 in UTC with microseconds."""
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{format_seconds(whole)[:-1]}.{micros:06d}Z"


def wall_clock(monotonic: float) -> float:
    """Convert a reading of time.monotonic(), now or in the past, to a Unix time."""
    return time.time() - (time.monotonic() - monotonic)


def legacy_line(event: Event) -> str:
    """Return the event as one line of text, without a newline (upstream: EventString)."""
    doc = event.document
    user, impersonated = doc.get("user") or {}, doc.get("impersonatedUser")
    name, groups = "<none>", "<none>"
    if user.get("username"):
        name = user["username"]
        groups = _quote(user["groups"]) if user.get("groups") else groups
    as_user, as_groups = "<self>", "<lookup>"
    if impersonated is not None:
        as_user = impersonated.get("username", "")
        as_groups = _quote(impersonated["groups"]) if "groups" in impersonated else as_groups
    status = doc.get("responseStatus")
    fields = {
        "id": doc["auditID"],
        "stage": doc["stage"],
        "ip": next(iter(doc.get("sourceIPs") or ()), "<unknown>"),
        "method": doc["verb"],
        "user": name,
        "groups": groups,
        "as": as_user,
        "asgroups": as_groups,
        "user-agent": doc.get("userAgent", ""),
        "namespace": (doc.get("objectRef") or {}).get("namespace") or "<none>",
        "uri": doc["requestURI"],
    }
    listed = " ".join(f"{key}={go_quote(value)}" for key, value in fields.items())
    code = "<deferred>" if status is None else status.get("code", 0)
    return f'{_shortest(doc["requestReceivedTimestamp"])} AUDIT: {listed} response="{code}"'


def _quote(texts: list[str]) -> str:
    return ",".join(map(go_quote, texts))


def _shortest(stamp: str) -> str:
    """Remove trailing zeros of the fraction from a time stamp, as RFC3339Nano does."""
    return stamp.rstrip("Z").rstrip("0").rstrip(".") + "Z"
