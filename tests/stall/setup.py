"""The state of a server before the cases: rights of users, definitions, and objects."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from stall.client import Client
from support.definitions import ANYTHING, definition, version

SPACE: Final = "/api/v1/namespaces/stall"
MAPS: Final = f"{SPACE}/configmaps"
LARGE_MAPS: Final = "/api/v1/namespaces/large/configmaps"
GROUP: Final = "stall.example.com"
WIDGETS: Final = f"/apis/{GROUP}/v1/namespaces/stall/widgets"
"""Custom resources that take anything."""
GADGETS: Final = f"/apis/{GROUP}/v1/namespaces/stall/gadgets"
"""Custom resources with lists as maps and sets, and rules in CEL."""
_RBAC: Final = "rbac.authorization.k8s.io"
_ALL: Final = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
_TEXT: Final = {"type": "string", "maxLength": 100}
_AGGREGATED: Final = ("system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view")
"""The ClusterRoles with the rules of `admin`. kube-apiserver leaves their aggregation to kube-controller-manager, which
does not run here.
"""

GADGET: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": 100_000,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": _TEXT, "value": {"type": "string"}},
                    },
                },
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "objects": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "properties": {"a": {"type": "string"}},
                    },
                },
                "numbers": {
                    "type": "array",
                    "maxItems": 10_000,
                    "items": {"type": "integer"},
                    "x-kubernetes-validations": [{"rule": "self.all(x, x >= 0)"}],
                },
                "pattern": {"type": "string", "pattern": "^(a+)+$"},
                "duration": {"type": "string", "format": "duration"},
                "choice": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
                "any": ANYTHING,
            },
        }
    },
}


async def prepare(admin: Client) -> None:
    """Create users' rights, definitions and objects."""
    for name in ("stall", "probe", "large"):
        await _create(admin, "/api/v1/namespaces", {"metadata": {"name": name}})
    await _create(admin, "/api/v1/namespaces/probe/configmaps", {"metadata": {"name": "probe"}, "data": {"a": "b"}})
    for kind, schema in (("Widget", ANYTHING), ("Gadget", GADGET)):
        body = definition(GROUP, kind, version(schema=schema))
        await _create(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "events"], "verbs": _ALL},
        {"apiGroups": [GROUP], "resources": ["widgets", "gadgets", "converteds"], "verbs": _ALL},
    ]
    await _grant(admin, "stall", "member", rules, "user", "editor")
    await _grant(admin, "large", "member", rules, "user", "editor")
    await _grant(
        admin, "probe", "reader", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}], "probe"
    )
    for role in ("admin", *_AGGREGATED):
        await _bind(admin, "stall", role, {"kind": "ClusterRole", "name": role}, "editor")
    # kube-controller-manager, which creates the service account of pods, does not run beside kube-apiserver.
    await _create(admin, f"{SPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    names = {f"m{number}": {"n": str(number)} for number in range(2000)}
    maps = [
        ("POST", MAPS, {"metadata": {"name": name, "labels": labels}, "data": {"a": "b" * 200}})
        for name, labels in names.items()
    ]
    await asyncio.gather(*(admin.ask_all(maps[start::20]) for start in range(20)))
    for path in (WIDGETS, GADGETS):
        for _ in range(200):
            if (await admin.ask("GET", path)).status == 200:
                break
            await asyncio.sleep(0.1)


async def _create(admin: Client, path: str, body: dict[str, Any]) -> None:
    outcome = await admin.ask("POST", path, body)
    assert outcome.status in (201, 409), (path, outcome.status, outcome.body)


async def _grant(admin: Client, namespace: str, name: str, rules: list[dict[str, Any]], *users: str) -> None:
    path = f"/apis/{_RBAC}/v1/namespaces/{namespace}/roles"
    await _create(admin, path, {"metadata": {"name": name}, "rules": rules})
    await _bind(admin, namespace, name, {"kind": "Role", "name": name}, *users)


async def _bind(admin: Client, namespace: str, name: str, role: dict[str, str], *users: str) -> None:
    subjects = [{"kind": "User", "apiGroup": _RBAC, "name": user} for user in users]
    body = {"metadata": {"name": name}, "subjects": subjects, "roleRef": {"apiGroup": _RBAC, **role}}
    await _create(admin, f"/apis/{_RBAC}/v1/namespaces/{namespace}/rolebindings", body)
