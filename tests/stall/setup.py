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
RESTRICTED: Final = "restricted"
"""The namespace with a LimitRange, a ResourceQuota and Pod Security Standards."""
RUNTIME_CLASS: Final = "stall"
"""A RuntimeClass with tolerations and a node selector."""
GADGETS: Final = f"/apis/{GROUP}/v1/namespaces/stall/gadgets"
"""Custom resources with lists as maps and sets, and rules in CEL."""
STRUCTUREDS: Final = f"/apis/{GROUP}/v1/namespaces/stall/structureds"
"""Custom resources of two versions with formats, alternatives, embedded objects and patterns."""
_RBAC: Final = "rbac.authorization.k8s.io"
_ALL: Final = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
_CUSTOM: Final = ["widgets", "gadgets", "structureds", "structureds/status", "converteds"]
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
                "slow": {"type": "string", "pattern": "(?i)" + "[a-zé]" * 3000},
                "duration": {"type": "string", "format": "duration"},
                "choice": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
                "any": ANYTHING,
            },
        }
    },
}


_MANY: Final = {"type": "array", "maxItems": 1_000_000}
STRUCTURED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "status": ANYTHING,
        "spec": {
            "type": "object",
            "properties": {
                "dates": {**_MANY, "items": {"type": "string", "format": "date-time"}},
                "addresses": {**_MANY, "items": {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}},
                "bytes": {"type": "string", "format": "byte"},
                "alternatives": {
                    **_MANY,
                    "items": {
                        "type": "object",
                        "properties": {name: {"type": "integer"} for name in "abc"},
                        "oneOf": [{"required": [name]} for name in "ab"],
                    },
                },
                "either": {**_MANY, "items": {"x-kubernetes-int-or-string": True}},
                "set": {**_MANY, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "ruled": {
                    "type": "object",
                    "maxProperties": 1000,
                    "additionalProperties": {
                        "type": "string",
                        "maxLength": 10,
                        "x-kubernetes-validations": [{"rule": "self.size() < 5"}],
                    },
                },
                "patterns": {**_MANY, "items": {"type": "string", "pattern": "^(a|aa)+$"}},
                "template": {**ANYTHING, "x-kubernetes-embedded-resource": True},
                "words": {**_MANY, "items": {"type": "string", "enum": ["a", "b", "c"]}},
            },
        },
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
    structured = version(schema=STRUCTURED, subresources={"status": {}})
    body = definition(GROUP, "Structured", structured, version("v2", storage=False, schema=STRUCTURED))
    await _create(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "events"], "verbs": _ALL},
        {
            "apiGroups": [GROUP],
            "resources": ["widgets", "gadgets", "structureds", "structureds/status", "converteds"],
            "verbs": _ALL,
        },
    ]
    await _grant(admin, "stall", "member", rules, "user", "editor")
    await _grant(admin, "large", "member", rules, "user", "editor")
    await _grant(
        admin, "probe", "reader", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}], "probe"
    )
    for role in ("admin", *_AGGREGATED):
        await _bind(admin, "stall", role, {"kind": "ClusterRole", "name": role}, "editor")
    await _permit_certificates(admin, "editor")
    # kube-controller-manager, which creates the service account of pods, does not run beside kube-apiserver.
    await _create(admin, f"{SPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    await _restrict(admin)
    names = {f"m{number}": {"n": str(number)} for number in range(2000)}
    maps = [
        ("POST", MAPS, {"metadata": {"name": name, "labels": labels}, "data": {"a": "b" * 200}})
        for name, labels in names.items()
    ]
    await asyncio.gather(*(admin.ask_all(maps[start::20]) for start in range(20)))
    for path in (WIDGETS, GADGETS, STRUCTUREDS):
        for _ in range(200):
            if (await admin.ask("GET", path)).status == 200:
                break
            await asyncio.sleep(0.1)


async def _restrict(admin: Client) -> None:
    """Create the namespace RESTRICTED with its bounds, and the RuntimeClass."""
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    await _create(admin, "/api/v1/namespaces", {"metadata": {"name": RESTRICTED, "labels": labels}})
    for role in ("admin", *_AGGREGATED):
        await _bind(admin, RESTRICTED, role, {"kind": "ClusterRole", "name": role}, "editor")
    space = f"/api/v1/namespaces/{RESTRICTED}"
    await _create(admin, f"{space}/serviceaccounts", {"metadata": {"name": "default"}})
    limit = {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "max": {"memory": "1Gi"}}
    await _create(admin, f"{space}/limitranges", {"metadata": {"name": "a"}, "spec": {"limits": [limit]}})
    hard = {"requests.cpu": "1", "limits.memory": "1Gi", "pods": "1"}
    quota = {"metadata": {"name": "a"}, "spec": {"hard": hard, "scopes": ["NotTerminating"]}}
    await _create(admin, f"{space}/resourcequotas", quota)
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]}
    body = {"metadata": {"name": RUNTIME_CLASS}, "handler": "a", "scheduling": scheduling}
    await _create(admin, "/apis/node.k8s.io/v1/runtimeclasses", body)


async def _create(admin: Client, path: str, body: dict[str, Any]) -> None:
    outcome = await admin.ask("POST", path, body)
    assert outcome.status in (201, 409), (path, outcome.status, outcome.body)


async def _grant(admin: Client, namespace: str, name: str, rules: list[dict[str, Any]], *users: str) -> None:
    path = f"/apis/{_RBAC}/v1/namespaces/{namespace}/roles"
    await _create(admin, path, {"metadata": {"name": name}, "rules": rules})
    await _bind(admin, namespace, name, {"kind": "Role", "name": name}, *users)


async def _permit_certificates(admin: Client, user: str) -> None:
    """Let a user ask for certificates, as nodes and many users of a cluster may."""
    rule = {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}
    name = {"name": "stall:certificates"}
    await _create(admin, f"/apis/{_RBAC}/v1/clusterroles", {"metadata": name, "rules": [rule]})
    subject = {"kind": "User", "apiGroup": _RBAC, "name": user}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", **name}
    body = {"metadata": name, "subjects": [subject], "roleRef": role}
    await _create(admin, f"/apis/{_RBAC}/v1/clusterrolebindings", body)


async def _bind(admin: Client, namespace: str, name: str, role: dict[str, str], *users: str) -> None:
    subjects = [{"kind": "User", "apiGroup": _RBAC, "name": user} for user in users]
    body = {"metadata": {"name": name}, "subjects": subjects, "roleRef": {"apiGroup": _RBAC, **role}}
    await _create(admin, f"/apis/{_RBAC}/v1/namespaces/{namespace}/rolebindings", body)
