"""Tests of the filter that rejects writes until the StorageVersion of their resource is updated."""

from __future__ import annotations

import pytest

from tetrapod.generic.filters.storage_versions import with_storage_version_precondition
from tetrapod.generic.http.request import Request, Response
from tetrapod.machinery import requestinfo
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo


class Pending:
    """Updates that are pending for all resources but reviews."""

    completed = False

    def pending(self, resource: GroupResource) -> str | None:
        if resource.group == "authorization.k8s.io":
            return None
        return "it failed" if resource.resource == "pods" else "<nil>"


async def handler(request: Request) -> Response:
    return Response(200, [])


async def status(method: str, path: str, user: UserInfo, barrier: Pending | None = None) -> int:
    request = Request(method, path)
    request.info = requestinfo.parse(method, path, "")
    request.user = user
    try:
        return (await with_storage_version_precondition(handler, barrier or Pending())(request)).status
    except StatusError as error:
        assert (error.reason, error.details) == ("ServiceUnavailable", None)
        return error.code


CLIENT = UserInfo("alice", groups=("system:masters",))
SERVER = UserInfo("system:apiserver", groups=("system:masters",))
POD = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("method", "path", "user", "expected"),
    [
        ("POST", POD, CLIENT, 503),
        ("DELETE", f"{POD}/a", CLIENT, 503),
        ("GET", POD, CLIENT, 200),
        ("GET", f"{POD}/a", CLIENT, 200),
        ("POST", "/custom", CLIENT, 200),
        ("PUT", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/a/status", CLIENT, 200),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", CLIENT, 200),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", CLIENT, 503),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", CLIENT, 200),
        ("POST", "/api/v1/namespaces", CLIENT, 503),
        ("POST", "/api/v1/namespaces", SERVER, 200),
        ("DELETE", "/api/v1/namespaces/a", SERVER, 503),
        ("POST", "/api/v1/namespaces", UserInfo("system:apiserver"), 503),
    ],
)
async def test_only_writes_that_the_update_does_not_need_are_rejected(
    method: str, path: str, user: UserInfo, expected: int
) -> None:
    assert await status(method, path, user) == expected


async def test_the_text_names_the_resource_and_the_last_error() -> None:
    request = Request("POST", POD)
    request.info, request.user = requestinfo.parse("POST", POD, ""), CLIENT
    text = r"^wait for storage version registration to complete for resource: pods, last seen error: it failed$"
    with pytest.raises(StatusError, match=text):
        await with_storage_version_precondition(handler, Pending())(request)


async def test_nothing_is_rejected_once_all_are_updated() -> None:
    barrier = Pending()
    barrier.completed = True
    assert await status("POST", POD, CLIENT, barrier) == 200


def test_nothing_is_filtered_without_the_feature() -> None:
    assert with_storage_version_precondition(handler, None) is handler
