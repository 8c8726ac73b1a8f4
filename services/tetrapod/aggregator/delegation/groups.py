"""The assignment of API groups to Tetrapod's services: aggregator, core, extensions and auth."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import Request
from tetrapod.generic.server.resource_config import ResourceConfig
from tetrapod.machinery.types import groups as builtin_groups

AUTH_GROUPS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io"})
EXTENSIONS_GROUP: Final = "apiextensions.k8s.io"
AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
_builtin = {group.name for group in builtin_groups() if group.versions}


def configure(resources: ResourceConfig) -> None:
    """Set the built-in groups of this process: those with a version that is served.

    Without this call they are the groups that are served by default. A group that is not served may be that of custom
    resources.
    """
    off = {group.name for group in builtin_groups() if not group.versions}
    _builtin.difference_update(off)
    _builtin.update(
        group.name for group in builtin_groups() if any(resources.serves(group.name, v) for v in group.optional)
    )


def service_of(group: str) -> str:
    """Return the name of the service that serves a group: "auth", "core" or "extensions".

    A group that is not built in is taken to be one of custom resources, which extensions serves. The aggregator's own
    group must not be passed.
    """
    if group in AUTH_GROUPS:
        return "auth"
    if group in _builtin and group != EXTENSIONS_GROUP:
        return "core"
    return "extensions"


def is_custom(group: str) -> bool:
    """Return whether a group is not built in: it is that of custom resources or of an external API server."""
    return group not in _builtin


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
