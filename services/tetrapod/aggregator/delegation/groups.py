"""The assignment of API groups to the four services."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import Request
from tetrapod.machinery.types import groups as builtin_groups

AUTH_GROUPS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io"})
EXTENSIONS_GROUP: Final = "apiextensions.k8s.io"
AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
_BUILTIN: Final = frozenset(group.name for group in builtin_groups())


def service_of(group: str) -> str:
    """Return the name of the service that serves a group: "auth", "core" or "extensions".

    Groups that are not built in are those of custom resources. The aggregator's own group must not be passed.
    """
    if group in AUTH_GROUPS:
        return "auth"
    if group in _BUILTIN and group != EXTENSIONS_GROUP:
        return "core"
    return "extensions"


def is_custom(group: str) -> bool:
    """Return whether a group is not built in: it is that of custom resources or of an external API server."""
    return group not in _BUILTIN


def group_of(request: Request) -> str | None:
    """Return the API group of a request, "" for the core group, or None if its path names none (/apis, /version).

    The path /api counts as the core group.
    """
    info = request.info
    if info is not None and info.is_resource_request:
        return info.api_group
    parts = request.path.split("/")
    if parts[1] == "api" and (len(parts) > 2 or request.path == "/api"):
        return ""
    return parts[2] if parts[1] == "apis" and len(parts) > 2 and parts[2] else None
