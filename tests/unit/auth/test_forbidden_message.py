from __future__ import annotations

from tetrapod.generic.authorization.interface import Attributes
from tetrapod.generic.authorization.message import forbidden_error, forbidden_message
from tetrapod.machinery.user import UserInfo

CAROL = UserInfo("carol")


def test_messages_of_forbidden_requests_are_upstreams() -> None:
    pods = Attributes(CAROL, "get", namespace="y", resource="pods", subresource="log", name="x", resource_request=True)
    assert forbidden_message(pods) == 'User "carol" cannot get resource "pods/log" in API group "" in the namespace "y"'
    everywhere = Attributes(CAROL, "", group="apps", resource="deployments", resource_request=True)
    assert (
        forbidden_message(everywhere)
        == 'User "carol" cannot  resource "deployments" in API group "apps" at the cluster scope'
    )


def test_markup_is_escaped_in_the_message_and_not_in_the_details() -> None:
    error = forbidden_error(Attributes(CAROL, "get", path="/<b>&"))
    assert error.message == 'forbidden: User "carol" cannot get path "/&lt;b&gt;&amp;"'
    assert error.details == {}
    named = forbidden_error(
        Attributes(UserInfo("<x>"), "get", resource="pods", name="<y>", resource_request=True), "because"
    )
    assert named.message == (
        'pods "<y>" is forbidden: User "&lt;x&gt;" cannot get resource "pods" in API group "" at '
        "the cluster scope: because"
    )
    assert named.details == {"name": "<y>", "kind": "pods"}
    assert (b"x-content-type-options", b"nosniff") in named.headers
