"""Operation ids and tags, derived from a route as upstream does it.

Upstream: k8s.io/apiserver/pkg/endpoints/openapi/openapi.go, GetOperationIDAndTagsFromRoute and ToValidOperationID.
"""

from __future__ import annotations


def operation_part(text: str, capitalize: bool) -> str:
    """Return a text as part of an operation id.

    It contains letters, digits and underscores. The letter after any other character is capitalized.
    """
    out = []
    for position, char in enumerate(text):
        if char.isalpha() or char == "_" or (position and char.isdigit()):
            out.append(char.upper() if capitalize else char)
            capitalize = False
        else:
            capitalize = True
    return "".join(out)


def operation_id(verb: str, group: str, version: str, subject: str) -> str:
    """Return an operation id: `list`, `apps`, `v1`, `NamespacedDeployment` become `listAppsV1NamespacedDeployment`."""
    parts = (group.removesuffix(".k8s.io") or "core", version, subject)
    return verb + "".join(operation_part(part, True) for part in parts if part)


def tag(group: str, version: str = "") -> str:
    """Return a tag, for example `rbacAuthorization_v1`."""
    name = operation_part(group.removesuffix(".k8s.io") or "core", False)
    return f"{name}_{operation_part(version, False)}" if version else name
