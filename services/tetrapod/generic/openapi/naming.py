"""Operation ids and tags, as upstream derives them from a route.

Upstream: k8s.io/apiserver/pkg/endpoints/openapi/openapi.go (GetOperationIDAndTagsFromRoute, ToValidOperationID).
"""

from __future__ import annotations


def operation_part(text: str, capitalize: bool) -> str:
    """A text as part of an operation id: letters, digits and underscores, each gap closed by a capital letter."""
    out = []
    for position, char in enumerate(text):
        if char.isalpha() or char == "_" or (position and char.isdigit()):
            out.append(char.upper() if capitalize else char)
            capitalize = False
        else:
            capitalize = True
    return "".join(out)


def operation_id(verb: str, group: str, version: str, what: str) -> str:
    """`list`, `apps`, `v1`, `NamespacedDeployment` → `listAppsV1NamespacedDeployment`."""
    parts = (group.removesuffix(".k8s.io") or "core", version, what)
    return verb + "".join(operation_part(part, True) for part in parts if part)


def tag(group: str, version: str = "") -> str:
    """`rbacAuthorization_v1`."""
    name = operation_part(group.removesuffix(".k8s.io") or "core", False)
    return f"{name}_{operation_part(version, False)}" if version else name
