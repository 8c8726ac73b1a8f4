"""Many small objects, written past the server into its store."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.encoding import encode
from tetrapod.machinery.gvk import Object

FOLDER = "/registry/configmaps/"


def config_map(namespace: str, name: str) -> Object:
    """Return an object of 400 bytes, as kubectl creates it."""
    fields: dict[str, Any] = {"f:data": {".": {}, "f:a": {}, "f:hello": {}}}
    manager = {
        "manager": "kubectl-create",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    stamp = "2026-11-23T03:21:15Z"
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": str(uuid.uuid4()),
        "creationTimestamp": stamp,
        "labels": {"app": "objects"},  # by which `load drain` of tests/scale selects them
    }
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {**metadata, "managedFields": [{**manager, "time": stamp}]},
        "data": {"a": "b", "hello": "world" * 4},
    }


async def fill(backend: Backend, count: int, namespaces: int = 1) -> None:
    """Store `count` ConfigMaps in the namespaces scale-0, scale-1, …, of which no objects need exist."""
    for start in range(0, count, 1000):
        named = [(f"scale-{n % namespaces}", f"config-{n:07}") for n in range(start, min(start + 1000, count))]
        values = [encode(config_map(namespace, name), "v1", "ConfigMap") for namespace, name in named]
        await asyncio.gather(
            *(
                backend.put_if(f"{FOLDER}{namespace}/{name}", value, 0)
                for (namespace, name), value in zip(named, values, strict=True)
            )
        )
