"""Attributes of the spans in which objects and watch events are encoded.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go, SerializeObject;
handlers/watch.go; the identifiers of encoders are those of k8s.io/apimachinery/pkg/runtime/serializer
"""

from __future__ import annotations

import json
from typing import Any, Final

from tetrapod.generic.http.negotiation.accept import CBOR, PROTOBUF, YAML, Accepted
from tetrapod.generic.observability.tracing.spans import current

_META: Final = "meta.k8s.io"


def serialization_attributes(api_version: str, accepted: Accepted, *, watch: bool = False) -> dict[str, Any]:
    """Return the attributes of the current span, in which an object or the events of a watch are encoded.

    Args:
        api_version: the apiVersion of the object, before it is transformed into another form.
        accepted: the media type and the form of the response.
        watch: whether the events of a watch are encoded.
    """
    span = current()
    return {
        **(span.trace.request if span is not None else {}),
        "mediaType": f"{accepted.media_type};stream=watch" if watch else accepted.media_type,
        "encoder": _encoder(
            f"{_META}/{accepted.form_version}" if accepted.form else api_version, accepted, watch=watch
        ),
    }


def _encoder(api_version: str, accepted: Accepted, *, watch: bool) -> str:
    media_type = accepted.media_type
    if media_type == PROTOBUF:
        encoder = "raw-protobuf" if watch else "protobuf"
    elif media_type == CBOR:
        encoder = "cbor"
    else:
        options = {"pretty": accepted.pretty, "strict": False, "yaml": media_type == YAML}
        encoder = _compact({"name": "json", **{name: str(value).lower() for name, value in options.items()}})
    return _compact({"encodeGV": api_version, "encoder": encoder, "name": "versioning"})


def _compact(value: dict[str, str]) -> str:
    return json.dumps(value, separators=(",", ":"))
