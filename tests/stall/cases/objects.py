"""Metadata that every object has, in any quantity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from stall.case import BODY, Case
from stall.message import Message
from stall.setup import MAPS
from stall.shuffled import shuffled

CREATE: Final = f"{MAPS}?dryRun=All"


def _metadata(name: str, metadata: Callable[[int], dict[str, Any]], path: str = CREATE, limit: int = BODY) -> Case:
    def message(n: int) -> Message:
        return Message("POST", path, body=orjson.dumps({"metadata": {"generateName": "a", **metadata(n)}}))

    return Case(f"metadata: {name}", "user", message, limit)


def _owner(i: int, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{i}", "uid": f"u{i}", **more}


def _fields(n: int) -> dict[str, Any]:
    return {"f:data": {f"f:k{i}": {} for i in range(n)}}


def _manager(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"manager": name, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}


def _nested(depth: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for _ in range(depth):
        fields = {"f:a": fields}
    return fields


CASES: Final = [
    _metadata("labels", lambda n: {"labels": {f"k{i}": "v" for i in range(n)}}),
    _metadata("labels, shuffled", lambda n: {"labels": dict.fromkeys(shuffled("k#", n), "v")}),
    _metadata("bad labels", lambda n: {"labels": {f"k {i}": "v !" for i in range(n)}}),
    _metadata("labels with prefixes", lambda n: {"labels": {f"{'a.' * 100}b/k{i}": "v" for i in range(n)}}),
    _metadata("one long label", lambda n: {"labels": {"k": "v" * n}}),
    _metadata("one long label key", lambda n: {"labels": {"k" * n: "v"}}),
    _metadata("annotations", lambda n: {"annotations": {f"k{i}": "v" for i in range(n)}}),
    _metadata("bad annotations", lambda n: {"annotations": {f"k {i}": "v" for i in range(n)}}),
    _metadata("one long annotation", lambda n: {"annotations": {"k": "v" * n}}),
    _metadata("finalizers", lambda n: {"finalizers": [f"example.com/f{i}" for i in range(n)]}),
    _metadata("finalizers without a domain", lambda n: {"finalizers": [f"f{i}" for i in range(n)]}),
    _metadata("bad finalizers", lambda n: {"finalizers": [f"f {i}" for i in range(n)]}),
    _metadata("one finalizer again and again", lambda n: {"finalizers": ["example.com/f"] * n}),
    _metadata("owner references", lambda n: {"ownerReferences": [_owner(i) for i in range(n)]}),
    _metadata("one owner again and again", lambda n: {"ownerReferences": [_owner(1)] * n}),
    _metadata(
        "owner references of controllers", lambda n: {"ownerReferences": [_owner(i, controller=True) for i in range(n)]}
    ),
    _metadata(
        "owner references that block",
        lambda n: {"ownerReferences": [_owner(i, blockOwnerDeletion=True) for i in range(n)]},
    ),
    _metadata("empty owner references", lambda n: {"ownerReferences": [{}] * n}),
    _metadata(
        "owners of many groups",
        lambda n: {"ownerReferences": [_owner(i, apiVersion=f"g{i}.example.com/v1") for i in range(n)]},
    ),
    _metadata("managed fields", lambda n: {"managedFields": [_manager("m", _fields(n))]}),
    _metadata("managers", lambda n: {"managedFields": [_manager(f"m{i}", {"f:data": {}}) for i in range(n)]}),
    _metadata(
        "managers of many fields", lambda n: {"managedFields": [_manager(f"m{i}", _fields(100)) for i in range(n)]}
    ),
    _metadata("one manager again and again", lambda n: {"managedFields": [_manager("m", {"f:data": {}})] * n}),
    _metadata("bad managed fields", lambda n: {"managedFields": [_manager("m", {f"x{i}": {} for i in range(n)})]}),
    _metadata("managed fields, nested", lambda n: {"managedFields": [_manager("m", _nested(100)) for _ in range(n)]}),
    _metadata(
        "managed fields of values", lambda n: {"managedFields": [_manager("m", {f'v:"{i}"': {} for i in range(n)})]}
    ),
    _metadata(
        "managed fields of keys", lambda n: {"managedFields": [_manager("m", {f'k:{{"a":{i}}}': {} for i in range(n)})]}
    ),
    _metadata(
        "managers of bad versions",
        lambda n: {"managedFields": [{**_manager("m", {}), "apiVersion": f"v{i}"} for i in range(n)]},
    ),
    _metadata("one long name", lambda n: {"name": "a" * n}),
    _metadata("one long bad name", lambda n: {"name": "a!" * n}),
    _metadata("one long generateName", lambda n: {"generateName": "a" * n}),
    _metadata("one long namespace", lambda n: {"namespace": "a" * n}),
    _metadata("one long uid", lambda n: {"uid": "a" * n}),
    _metadata("one long resourceVersion", lambda n: {"resourceVersion": "1" * n}),
    _metadata("one long time", lambda n: {"creationTimestamp": "2" * n}),
    _metadata("labels, stored", lambda n: {"labels": {f"k{i}": "v" for i in range(n)}}, MAPS, 500_000),
    _metadata("annotations, stored", lambda n: {"annotations": {f"k{i}": "v" for i in range(n)}}, MAPS, 250_000),
    _metadata("owner references, stored", lambda n: {"ownerReferences": [_owner(i) for i in range(n)]}, MAPS, 500_000),
    _metadata(
        "owners of many kinds, stored",
        lambda n: {"ownerReferences": [_owner(i, kind=f"K{i}") for i in range(n)]},
        MAPS,
        500_000,
    ),
]
