"""Requests that cause each error status that the server has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from soak.prepared import CONFIG_MAPS, NAMESPACE, PODS, config_map

_JSON: Final = "application/json"
_MERGE: Final = "application/merge-patch+json"
_AWAY: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "rejected", "labels": {"webhook": "away"}},
}
_EVICTION: Final = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"name": "guarded", "namespace": NAMESPACE},
}
_STALE: Final = {**config_map("present"), "metadata": {"name": "present", "resourceVersion": "1"}}
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}}
_TOKEN: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
_DEEP: Final = json.loads("[" * 400 + "]" * 400)


class Wrong(NamedTuple):
    """A request that is rejected. `every`: only each so many rounds, for those that take long."""

    method: str
    path: str
    body: Any = None
    content_type: str = _JSON
    every: int = 1


WRONG: Final[Sequence[Wrong]] = (
    Wrong("GET", f"{CONFIG_MAPS}/missing"),
    Wrong("GET", "/apis/unknown.example.com/v1/things"),
    Wrong("GET", "/unknown/path"),
    Wrong("POST", CONFIG_MAPS, "no object"),
    Wrong("POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
    Wrong("POST", CONFIG_MAPS, {**config_map("x"), "data": {"deep": _DEEP}}),
    Wrong("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", {**config_map("x"), "unknown": 1}),
    Wrong("POST", f"{CONFIG_MAPS}?dryRun=Wrong", config_map("x")),
    Wrong("POST", CONFIG_MAPS, config_map("present")),
    Wrong("POST", CONFIG_MAPS, config_map("Not A Name")),
    Wrong("POST", CONFIG_MAPS, _AWAY, every=10),
    Wrong("POST", CONFIG_MAPS, config_map("large", text="x" * 3_200_000), every=50),
    Wrong("POST", CONFIG_MAPS, config_map("x"), "text/plain"),
    Wrong("PUT", f"{CONFIG_MAPS}/present", _STALE),
    Wrong("PUT", f"{CONFIG_MAPS}/present", config_map("another")),
    Wrong("PATCH", f"{CONFIG_MAPS}/present", [1], _MERGE),
    Wrong(
        "PATCH",
        f"{CONFIG_MAPS}/present",
        [{"op": "test", "path": "/data/a", "value": "z"}],
        "application/json-patch+json",
    ),
    Wrong("PATCH", f"{CONFIG_MAPS}/missing", {"data": {}}, _MERGE),
    Wrong("PATCH", f"{CONFIG_MAPS}/present", {"data": {}}, "application/unknown"),
    Wrong("DELETE", f"{CONFIG_MAPS}/missing"),
    Wrong("DELETE", f"{CONFIG_MAPS}/present", {"preconditions": {"uid": "another"}}),
    Wrong("POST", "/version"),
    Wrong("PUT", CONFIG_MAPS, config_map("x")),
    Wrong("GET", f"{CONFIG_MAPS}?limit=wrong"),
    Wrong("GET", f"{CONFIG_MAPS}?labelSelector=%28"),
    Wrong("GET", f"{CONFIG_MAPS}?continue=wrong"),
    Wrong("GET", f"{CONFIG_MAPS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan", every=20),
    Wrong("GET", f"{CONFIG_MAPS}?resourceVersion=1&resourceVersionMatch=Exact"),
    Wrong("POST", f"{PODS}/guarded/eviction", _EVICTION),
    Wrong("POST", f"{PODS}/guarded/exec?command=ls&stdout=true"),
    Wrong("GET", f"{PODS}/guarded/log?tailLines=wrong"),
    Wrong("GET", "/apis/away.soak.example.com/v1/things"),
    Wrong("POST", "/apis/authentication.k8s.io/v1/tokenreviews", _REVIEW),
    Wrong("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/missing/token", _TOKEN),
)
_HEAD: Final = f"GET {CONFIG_MAPS}/present HTTP/1.1\r\nHost: x\r\n"
RAW: Final[Sequence[bytes]] = (
    b"nonsense\r\n\r\n",
    f"{_HEAD}Accept: text/html\r\n\r\n".encode(),
    f"{_HEAD}Transfer-Encoding: gzip\r\n\r\n".encode(),
    f"GET {CONFIG_MAPS} HTTP/2.0\r\nHost: x\r\n\r\n".encode(),
    f"{_HEAD}Host: y\r\n\r\n".encode(),
    f"{_HEAD}Expect: miracles\r\n\r\n".encode(),
    f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
    f"BREW {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
)
"""Heads and bodies that an HTTP library does not send; with the client certificate of an administrator."""
