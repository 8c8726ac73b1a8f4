"""Reads of many objects, and writes to many: 2,000 ConfigMaps in one namespace, and up to eight of 3 MB in another."""

from __future__ import annotations

from typing import Final

from stall.case import HEAD, Case
from stall.client import Client
from stall.message import Headers, Message
from stall.setup import LARGE_MAPS, MAPS
from tetrapod.machinery.labels.parser import MOST_TERMS

_TABLE: Final = (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)
_PARTIAL: Final = (("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),)
_PROTOBUF: Final = (("Accept", "application/vnd.kubernetes.protobuf"),)
_YAML: Final = (("Accept", "application/yaml"),)
_GZIP: Final = (("Accept-Encoding", "gzip"),)
_MOST: Final = 16
_MOST_LARGE: Final = 8
_VALUES: Final = 95_000


def _list(name: str, query: str = "", headers: Headers = ()) -> Case:
    return Case(f"list: {name}", "user", lambda n: Message("GET", f"{MAPS}?{query}", headers, copies=n), most=_MOST)


def _large(name: str, query: str = "", headers: Headers = ()) -> Case:
    """Return a case that lists n ConfigMaps of 3 MB."""
    return Case(
        f"large objects: {name}",
        "user",
        lambda n: Message(
            "GET", f"{LARGE_MAPS}?{query}labelSelector=number+in+({','.join(map(str, range(n)))})", headers
        ),
        most=_MOST_LARGE,
        prepare=_create_large,
    )


async def _create_large(admin: Client, n: int) -> None:
    """Create n ConfigMaps, each of 3 MB with its managed fields, unless they exist."""
    data = {f"key-{i}": "" for i in range(_VALUES)}
    for number in range(n):
        metadata = {"name": f"large-{number}", "labels": {"number": str(number)}}
        outcome = await admin.ask("POST", LARGE_MAPS, {"metadata": metadata, "data": data})
        assert outcome.status in (201, 409), outcome.body[:500]


def _openapi_message(n: int) -> Message:
    accept = ("Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    return Message("GET", "/openapi/v2", (accept,), copies=n)


async def _encode_openapi(admin: Client, n: int) -> None:
    """Send the first request, for which the server encodes the document, which does not grow with `n`."""
    await admin.send([_openapi_message(1)])


def _openapi_document(n: int) -> Message:
    return Message("GET", "/openapi/v2", copies=n)


async def _encode_openapi_document(admin: Client, n: int) -> None:
    """Send the first request, for which the server encodes the document, which does not grow with `n`."""
    await admin.send([_openapi_document(1)])


def _selected(name: str, parameter: str, term: str) -> Case:
    """Return a case of as many terms as a selector may have."""

    def message(n: int) -> Message:
        terms = ",".join(term.format(i) for i in range(n))
        return Message("GET", f"{MAPS}?{parameter}={terms.replace('!', '%21').replace('=', '%3D')}")

    return Case(f"list: {name}", "user", message, HEAD, MOST_TERMS)


CASES: Final = [
    _large("JSON"),
    _large("Table", headers=_TABLE),
    _large("Table with objects", "includeObject=Object&", _TABLE),
    _large("metadata", headers=_PARTIAL),
    _large("protobuf", headers=_PROTOBUF),
    _large("YAML", headers=_YAML),
    _large("indented", "pretty=true&"),
    _list("JSON"),
    _list("gzip", headers=_GZIP),
    _list("Table", headers=_TABLE),
    _list("Table with objects", "includeObject=Object", _TABLE),
    _list("metadata", headers=_PARTIAL),
    _list("protobuf", headers=_PROTOBUF),
    _list("YAML", headers=_YAML),
    _list("YAML, gzip", headers=(*_YAML, *_GZIP)),
    _list("indented", "pretty=true"),
    _list("pages", "limit=500"),
    _list("selector that nothing matches", "labelSelector=a=b"),
    _list("selector that all match", "labelSelector=n"),
    _list("field selector", "fieldSelector=metadata.name=m1"),
    _list(
        "watch with an initial list",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1",
    ),
    _list("watch from the beginning", "watch=1&resourceVersion=0&timeoutSeconds=1"),
    _list("watch of Tables", "watch=1&timeoutSeconds=1", _TABLE),
    Case(
        "list: set of many values",
        "user",
        lambda n: Message("GET", f"{MAPS}?labelSelector=n+in+({','.join(map(str, range(n)))})"),
        HEAD,
    ),
    Case(
        "list: many requirements",
        "user",
        lambda n: Message("GET", f"{MAPS}?labelSelector=" + ",".join(f"!k{i}" for i in range(n))),
        200_000,
    ),
    _selected("absent labels", "labelSelector", "!k{}"),
    _selected("unequal labels", "labelSelector", "n!=v{}"),
    _selected("unequal names", "fieldSelector", "metadata.name!=v{}"),
    Case(
        "list: watches with an initial list",
        "user",
        lambda n: Message("GET", f"{MAPS}?watch=1&timeoutSeconds=1", parallel=n),
        most=64,
    ),
    Case("deletecollection, dry run", "user", lambda n: Message("DELETE", f"{MAPS}?dryRun=All", copies=n), most=1),
    Case("discovery", "anonymous", lambda n: Message("GET", "/apis", copies=n), most=64),
    Case("OpenAPI v2", "user", _openapi_document, most=4, prepare=_encode_openapi_document),
    Case("OpenAPI v2, protobuf, first request", "user", _openapi_message, most=1),
    Case("OpenAPI v2, protobuf", "user", _openapi_message, most=4, prepare=_encode_openapi),
    Case("OpenAPI v3", "user", lambda n: Message("GET", "/openapi/v3/apis/apps/v1", copies=n), most=16),
    Case("health checks", "anonymous", lambda n: Message("GET", "/readyz?verbose", copies=n), most=256),
]
