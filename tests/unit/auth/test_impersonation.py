"""Tests of impersonation: the constrained modes, the classic mode, and the recorded texts of rejections."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.authorization.rules import Grant, RuleSet
from tetrapod.generic.authorization.union import Named, PrivilegedGroup, UnionAuthorizer
from tetrapod.generic.filters.impersonation import with_impersonation
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery import requestinfo
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo

SA = UserInfo(
    "system:serviceaccount:ns:default",
    groups=("system:serviceaccounts",),
    extra={"authentication.kubernetes.io/node-name": ("n1",)},
)
ADMIN = UserInfo("admin", groups=("system:masters", "system:authenticated"))
READ = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["pods"]}


class Rules:
    def __init__(self, *rules: dict[str, Any]) -> None:
        self.set = RuleSet([Grant("r", list(rules))] if rules else [])

    async def authorize(self, attributes: Any) -> Any:
        return self.set.authorize(attributes)


def rule(verb: str, resource: str, *names: str, group: str = "authentication.k8s.io") -> dict[str, Any]:
    return {"verbs": [verb], "apiGroups": [group], "resources": [resource], "resourceNames": list(names)}


def chain(*rules: dict[str, Any]) -> Handler:
    async def inner(request: Request) -> Response:
        assert not any(name.startswith(b"impersonate") for name, _ in request.headers)
        return Response(200, [], repr(request.user).encode())

    return with_impersonation(inner, UnionAuthorizer([Named("", PrivilegedGroup()), Named("rbac", Rules(*rules))]))


async def become(
    handler: Handler, requestor: UserInfo, *headers: tuple[str, str], path: str = "/api/v1/namespaces/ns/pods"
) -> UserInfo:
    request = Request("GET", path, headers=[(k.lower().encode(), v.encode()) for k, v in headers], user=requestor)
    request.info = requestinfo.parse("GET", path, "")
    await handler(request)
    return request.user


async def rejection(
    handler: Handler, requestor: UserInfo, *headers: tuple[str, str], path: str = "/api/v1/namespaces/ns/pods"
) -> str:
    with pytest.raises(StatusError) as caught:
        await become(handler, requestor, *headers, path=path)
    return caught.value.message


async def test_without_impersonation_headers_the_user_is_unchanged() -> None:
    assert await become(chain(), SA) == SA


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        ([("Impersonate-User", "eve")], ("system:authenticated",)),
        (
            [("Impersonate-User", "eve"), ("Impersonate-Group", "d"), ("Impersonate-Group", "system:authenticated")],
            ("d", "system:authenticated"),
        ),
        (
            [("Impersonate-User", "eve"), ("Impersonate-Group", "system:masters")],
            ("system:masters", "system:authenticated"),
        ),
        ([("Impersonate-User", "eve"), ("Impersonate-Group", "system:unauthenticated")], ("system:unauthenticated",)),
        ([("Impersonate-User", "system:anonymous")], ("system:unauthenticated",)),
        (
            [("Impersonate-User", "system:serviceaccount:n:d")],
            ("system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"),
        ),
        (
            [("Impersonate-User", "system:serviceaccount:n:d"), ("Impersonate-Group", "robots")],
            ("robots", "system:authenticated"),
        ),
        ([("Impersonate-User", "system:serviceaccount:n")], ("system:authenticated",)),
        (
            [("Impersonate-User", "system:node:n"), ("Impersonate-Group", "system:nodes")],
            ("system:nodes", "system:authenticated"),
        ),
    ],
)
async def test_impersonated_groups_are_checked(headers: list[tuple[str, str]], groups: tuple[str, ...]) -> None:
    user = await become(chain(), ADMIN, *headers)
    assert (user.name, user.groups) == (headers[0][1], groups)


async def test_extra_keys_are_unescaped_and_lowered() -> None:
    headers = [
        ("Impersonate-User", "e"),
        ("Impersonate-Extra-Acme.com%2FProject", "p"),
        ("Impersonate-Extra-scopes", "a"),
        ("impersonate-extra-scopes", "b"),
    ]
    user = await become(chain(), ADMIN, *headers, ("Impersonate-Uid", "u"))
    assert user.extra == {"acme.com/project": ("p",), "scopes": ("a", "b")}
    assert user.uid == "u"


async def test_rejections_name_the_first_mode_that_applies() -> None:
    handler = chain()
    me = '"system:serviceaccount:ns:default"'
    where = 'in API group "" in the namespace "ns"'
    assert await rejection(handler, SA, ("Impersonate-User", "admin")) == (
        f'pods is forbidden: User {me} cannot impersonate-on:user-info:list resource "pods" {where}'
    )
    assert f'cannot impersonate-on:serviceaccount:list resource "pods" {where}' in await rejection(
        handler, SA, ("Impersonate-User", "system:serviceaccount:kube-system:default")
    )
    assert "impersonate-on:associated-node:list" in await rejection(handler, SA, ("Impersonate-User", "system:node:n1"))
    assert "impersonate-on:arbitrary-node:list" in await rejection(handler, SA, ("Impersonate-User", "system:node:n2"))
    assert await rejection(
        handler, SA, ("Impersonate-User", "system:node:n1"), ("Impersonate-Group", "system:nodes")
    ) == (
        f'users "system:node:n1" is forbidden: User {me} cannot impersonate resource "users" in API group "" at '
        "the cluster scope"
    )
    assert "impersonate-on:user-info:get path" in await rejection(
        handler, SA, ("Impersonate-User", "alice"), path="/healthz"
    )


async def test_rejections_are_those_of_the_classic_mode_once_it_was_used() -> None:
    handler = chain(rule("impersonate", "users", "eve", group=""))
    assert (await become(handler, SA, ("Impersonate-User", "eve"))).name == "eve"
    assert 'users "admin" is forbidden' in await rejection(handler, SA, ("Impersonate-User", "admin"))


async def test_a_constrained_user_needs_both_rights() -> None:
    on = {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]}
    assert 'cannot impersonate:user-info resource "users" in API group "authentication.k8s.io"' in await rejection(
        chain(on), SA, ("Impersonate-User", "eve")
    )
    handler = chain(on, rule("impersonate:user-info", "users", "eve"))
    assert (await become(handler, SA, ("Impersonate-User", "eve"))).groups == ("system:authenticated",)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (("Impersonate-Group", "system:masters"), "impersonating the system:masters group is not allowed"),
        (("Impersonate-Group", ""), "impersonating the empty string group is not allowed"),
        (("Impersonate-Extra-Scopes", "x"), "impersonating an invalid key in extra is not allowed"),
    ],
)
async def test_constrained_modes_reject_although_rbac_allows(header: tuple[str, str], text: str) -> None:
    everything = {
        "verbs": ["impersonate:user-info", "impersonate-on:user-info:list"],
        "apiGroups": ["*"],
        "resources": ["*"],
    }
    assert text in await rejection(chain(everything), SA, ("Impersonate-User", "eve"), header)


async def test_a_pod_can_be_allowed_to_impersonate_only_its_own_node() -> None:
    on = {"verbs": ["impersonate-on:associated-node:list"], "apiGroups": [""], "resources": ["pods"]}
    who = {"verbs": ["impersonate:associated-node"], "apiGroups": ["authentication.k8s.io"], "resources": ["nodes"]}
    handler = chain(on, who)
    user = await become(handler, SA, ("Impersonate-User", "system:node:n1"))
    assert (user.name, user.groups) == ("system:node:n1", ("system:nodes", "system:authenticated"))
    assert user.extra == {}
    await rejection(handler, SA, ("Impersonate-User", "system:node:n2"))


async def test_impersonation_without_a_user_is_a_bad_request() -> None:
    message = await rejection(chain(), ADMIN, ("Impersonate-Group", "x"))
    assert "without impersonating a user name" in message
