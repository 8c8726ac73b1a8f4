"""Rejects writes of resources whose StorageVersion this server has not updated yet.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/storageversion.go
"""

from __future__ import annotations

from typing import Final, Protocol

from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.status import service_unavailable
from tetrapod.machinery.user import SYSTEM_MASTERS

_READS: Final = frozenset({"get", "list", "watch"})
_SERVER: Final = "system:apiserver"


class Barrier(Protocol):
    """The state of the updates of StorageVersions.

    Attributes:
        completed: whether all have been updated once.
    """

    completed: bool

    def pending(self, resource: GroupResource) -> str | None:
        """Return the last error of a resource whose StorageVersion is not updated yet; None for all others."""
        ...


def with_storage_version_precondition(handler: Handler, barrier: Barrier | None) -> Handler:
    """Return a handler that passes on the requests which need not wait for StorageVersions.

    Writes of resources whose StorageVersion is pending are rejected with StatusError 503. The writes that the update
    needs itself are exempt: of StorageVersions, of Leases in kube-system, and of namespaces by the server itself.

    Args:
        handler: the next handler.
        barrier: the state of the updates; None passes on every request.
    """
    if barrier is None:
        return handler

    async def precondition(request: Request) -> Response:
        if barrier.completed or (resource := _written(request)) is None:
            return await handler(request)
        error = barrier.pending(resource)
        if error is None:
            return await handler(request)
        text = f"wait for storage version registration to complete for resource: {resource}, last seen error: {error}"
        raise service_unavailable(text)

    return precondition


def _written(request: Request) -> GroupResource | None:
    """Return the resource that a request writes; None if it writes none, or is exempt."""
    info = request.info
    if info is None or not info.is_resource_request or info.verb in _READS:
        return None
    resource = GroupResource(info.api_group, info.resource)
    if resource == ("internal.apiserver.k8s.io", "storageversions"):
        return None
    if resource == ("coordination.k8s.io", "leases") and info.namespace == "kube-system":
        return None
    is_server = request.user.name == _SERVER and SYSTEM_MASTERS in request.user.groups
    return None if is_server and resource == ("", "namespaces") and info.verb == "create" else resource
