"""Builders for APIServices and services, and a client that records the requests made through it."""

from __future__ import annotations

import copy
from typing import Any

from tetrapod.machinery.gvk import Object


def api_service(
    group: str,
    version: str = "v1",
    *,
    priority: int = 1000,
    order: int = 100,
    service: Object | None = None,
    **labels: str,
) -> Object:
    spec: Object = {"group": group, "version": version, "groupPriorityMinimum": priority, "versionPriority": order}
    if service is not None:
        spec["service"] = {"namespace": "ns", "name": "api", "port": 443, **service}
    name = f"{version}.{group}"
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}, "spec": spec}


class FakeCluster:
    def __init__(self) -> None:
        self.services: dict[tuple[str, str], Object] = {}
        self.slices: dict[tuple[str, str], list[Object]] = {}

    def add(self, *ports: Object, name: str = "api", **spec: Any) -> None:
        self.services["ns", name] = {
            "metadata": {"namespace": "ns", "name": name},
            "spec": {"clusterIP": "10.0.0.9", "ports": list(ports), **spec},
        }

    def service(self, namespace: str, name: str) -> Object | None:
        return self.services.get((namespace, name))

    def endpoint_slices(self, namespace: str, name: str) -> list[Object]:
        return self.slices.get((namespace, name), [])


class FakeClient:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Object]] = []

    async def create(self, gvr: Any, namespace: str, obj: Object, **_: Any) -> Object:
        self.calls.append(("create", obj["metadata"]["name"], copy.deepcopy(obj)))
        return obj

    async def update(self, gvr: Any, namespace: str, obj: Object, *, subresource: str = "", **_: Any) -> Object:
        self.calls.append((f"update/{subresource}", obj["metadata"]["name"], copy.deepcopy(obj)))
        return obj

    async def delete(self, gvr: Any, namespace: str, name: str, options: Object | None = None) -> Object:
        self.calls.append(("delete", name, options or {}))
        return {}
