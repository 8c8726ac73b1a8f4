"""The bootstrap policy: the RBAC objects that a kube-apiserver of the pinned version creates.

They are generated into data/policy.json. The labels, annotations, API groups and the like that all of them have are not
in the file and are added here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final, NamedTuple

import orjson

from tetrapod.generic.authorization.rbac_storage import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC_GROUP,
    RBAC_VERSION,
    ROLE_BINDINGS,
    ROLES,
)
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.machinery.gvk import Object

AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"

_GATES_OF_PATHS: Final = {"/flagz": "ComponentFlagz", "/statusz": "ComponentStatusz"}


class Policy(NamedTuple):
    """The bootstrap objects of one kind.

    Attributes:
        storage: where to store them.
        objects: the objects, without uid and other system fields. Aggregated ClusterRoles have None as rules.
    """

    storage: StorageConfig
    objects: list[Object]


def bootstrap_policy(*, services_apart: bool = False) -> list[Policy]:
    """Return the bootstrap policy as new objects, with roles first, so that no binding exists without its role.

    Args:
        services_apart: whether aggregator, core, extensions and auth run as separate processes. The policy then also
            has the roles and bindings by which they may send requests to each other (data/services.json, found by
            auditing them).
    """
    data = _read("policy.json")
    if services_apart:
        data = {
            kind: [*entries, *more]
            for (kind, entries), more in zip(data.items(), _read("services.json").values(), strict=True)
        }
    return [
        Policy(CLUSTER_ROLES, _all(data, CLUSTER_ROLES, _role)),
        Policy(ROLES, _all(data, ROLES, _role)),
        Policy(CLUSTER_ROLE_BINDINGS, _all(data, CLUSTER_ROLE_BINDINGS, _binding)),
        Policy(ROLE_BINDINGS, _all(data, ROLE_BINDINGS, _binding)),
    ]


def _read(name: str) -> dict[str, list[dict[str, Any]]]:
    policies: dict[str, list[dict[str, Any]]] = orjson.loads(files(__package__).joinpath("data", name).read_bytes())
    return policies


def node_rules() -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole system:node.

    The node authorizer uses them where no more specific rule applies.
    """
    role = next(role for role in _read("policy.json")["clusterroles"] if role["name"] == "system:node")
    rules: list[dict[str, Any]] = _role(role)["rules"]
    return rules


def _all(
    data: dict[str, list[dict[str, Any]]], storage: StorageConfig, body: Callable[[dict[str, Any]], Object]
) -> list[Object]:
    return [
        {"kind": storage.kind, "apiVersion": RBAC_VERSION, "metadata": _metadata(entry), **body(entry)}
        for entry in data[storage.prefix]
        if _is_enabled(entry)
    ]


def _metadata(entry: dict[str, Any]) -> Object:
    meta: Object = {
        "name": entry["name"],
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **entry.get("labels", {})},
        "annotations": {AUTOUPDATE: "true"},
    }
    if "namespace" in entry:
        meta["namespace"] = entry["namespace"]
    return meta


def _role(entry: dict[str, Any]) -> Object:
    if "aggregationRule" in entry:
        return {"aggregationRule": entry["aggregationRule"], "rules": None}
    return {"rules": [_without_disabled(rule) for rule in entry["rules"] if _is_enabled(rule)]}


def _is_enabled(entry: dict[str, Any]) -> bool:
    """Return whether a rule, role or binding of the data has no feature gate, or one that is enabled."""
    return "gate" not in entry or feature_gates.enabled(entry["gate"])


def _without_disabled(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule without the paths of disabled feature gates, and without the name of its own gate."""
    rule = {key: value for key, value in rule.items() if key != "gate"}
    urls = rule.get("nonResourceURLs", ())
    if not any(url in _GATES_OF_PATHS for url in urls):
        return rule
    kept = [url for url in urls if url not in _GATES_OF_PATHS or feature_gates.enabled(_GATES_OF_PATHS[url])]
    return {**rule, "nonResourceURLs": kept}


def _binding(entry: dict[str, Any]) -> Object:
    kind, _, name = entry["role"].partition("/")
    ref = {"apiGroup": RBAC_GROUP, "kind": kind, "name": name}
    subjects = [_subject(text) for text in entry.get("subjects", ())]
    return {"subjects": subjects, "roleRef": ref} if subjects else {"roleRef": ref}


def _subject(text: str) -> Object:
    """Convert `Group:system:masters`, `User:x` or `ServiceAccount:namespace/name` to a subject of a binding."""
    kind, _, name = text.partition(":")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "apiGroup": RBAC_GROUP, "name": name}
