"""The kinds of objects that the clients write, one of each service with stored objects.

Each write leaves a unique mark in its object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from support.definitions import definition, version

NAMESPACE: Final = "chaos"
MARK: Final = "chaos/mark"
COUNT: Final = "chaos/count"
CONTROLLERS_OWN: Final = ("kube-root-ca.crt",)  # objects that the clients did not write


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    api_version: str
    kind: str
    collection: str
    prefix: str  # the prefix of its keys in the store
    service: str  # the service that serves it
    creates_on_update: bool = False

    def path(self, name: str) -> str:
        return f"{self.collection}/{name}"

    def object(self, name: str, mark: str, count: int, expected: int = 0) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "annotations": {MARK: mark, COUNT: str(count)}}
        if expected:
            metadata["resourceVersion"] = str(expected)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}


CONFIG_MAPS: Final = Kind(
    "configmaps",
    "v1",
    "ConfigMap",
    f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    f"/registry/configmaps/{NAMESPACE}/",
    "core",
)
WIDGETS: Final = Kind(
    "widgets",
    "chaos.example.com/v1",
    "Widget",
    f"/apis/chaos.example.com/v1/namespaces/{NAMESPACE}/widgets",
    f"/registry/chaos.example.com/widgets/{NAMESPACE}/",
    "extensions",
)
ROLES: Final = Kind(
    "roles",
    "rbac.authorization.k8s.io/v1",
    "Role",
    f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    f"/registry/roles/{NAMESPACE}/",
    "auth",
    creates_on_update=True,
)
KINDS: Final = (CONFIG_MAPS, WIDGETS, ROLES)
BY_NAME: Final = {kind.name: kind for kind in KINDS}

WIDGETS_DEFINITION: Final = definition("chaos.example.com", "Widget", version(schema={"type": "object"}))
