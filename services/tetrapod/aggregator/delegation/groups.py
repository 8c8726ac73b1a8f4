"""The API groups of each of the four services."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import Request
from tetrapod.machinery.types import groups as builtin_groups

AUTH_GROUPS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io"})
EXTENSIONS_GROUP: Final = "apiextensions.k8s.io"
AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
_BUILTIN: Final = frozenset(group.name for group in builtin_groups())


def service_of(group: str) -> str:
    """Return the service of a group other than the aggregator's own.

    Groups that are not built in are those of custom resources.
    """
    if group in AUTH_GROUPS:
        return "auth"
    if group in _BUILTIN and group != EXTENSIONS_GROUP:
        return "core"
    return "extensions"


def group_of(request: Request) -> str | None:
    """Return the API group in a path, or None if it has none."""
    info = request.info
    if info is not None and info.is_resource_request:
        return info.api_group
    parts = request.path.split("/")
    if parts[1] == "api" and (len(parts) > 2 or request.path == "/api"):
        return ""
    return parts[2] if parts[1] == "apis" and len(parts) > 2 and parts[2] else None
