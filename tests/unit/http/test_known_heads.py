"""Results that requests with the same head share."""

from __future__ import annotations

from tetrapod.generic.http.known_heads import Head, of_headers
from tetrapod.generic.http.request import HeaderList, Request
from tetrapod.generic.proxy.headers import forwarded_headers, render_request, shared_headers
from tetrapod.machinery.user import UserInfo

HEADERS: HeaderList = [(b"host", b"x"), (b"accept", b"a"), (b"x-forwarded-for", b"1.2.3.4")]
USER = UserInfo("u")


def of_head(head: Head | None, audit_id: str = "i", user: UserInfo = USER, remote: str = "r") -> Request:
    request = Request("GET", "/", headers=head.headers if head is not None else list(HEADERS), user=user)
    request.head, request.audit_id, request.remote = head, audit_id, remote
    return request


def test_a_result_is_computed_once_until_a_filter_replaces_the_headers() -> None:
    calls = []

    def count(headers: HeaderList) -> int:
        calls.append(headers)
        return len(headers)

    head = Head(HEADERS)
    assert [of_headers(of_head(head), count) for _ in range(3)] == [3, 3, 3]
    assert len(calls) == 1
    changed = of_head(head)
    changed.headers = [(b"other", b"1")]
    assert of_headers(changed, count) == 1
    assert of_headers(of_head(head), count) == 3
    assert [of_headers(of_head(None), count) for _ in range(2)] == [3, 3]


def test_forwarded_headers_of_a_known_head_are_those_of_any_other() -> None:
    head = Head(HEADERS)
    alice, bob = UserInfo("alice", "1", ("a", "b")), UserInfo("bob", "", (), {"k": ("v",)})
    for user, remote, audit_id in (
        (alice, "r", "1"),
        (alice, "r", "2"),
        (bob, "r", "3"),
        (bob, "s", "4"),
        (alice, "", "5"),
        (alice, "", ""),
    ):
        expected = forwarded_headers(HEADERS, user, remote, audit_id)
        headers = shared_headers(of_head(head, audit_id, user, remote))
        assert headers == expected
        assert render_request("GET", "/x", "h", headers, b"") == render_request("GET", "/x", "h", expected, b"")
    replaced = of_head(head, "6", alice)
    replaced.headers = [(b"accept", b"other")]
    assert shared_headers(replaced) == forwarded_headers([(b"accept", b"other")], alice, "r", "6")


def test_forwarded_headers_of_users_with_many_groups_are_not_kept() -> None:
    head = Head(HEADERS)
    user = UserInfo("u", groups=tuple(f"group-{i}" for i in range(1000)))
    assert shared_headers(of_head(head, user=user)) == forwarded_headers(HEADERS, user, "r", "i")
    assert not head.derived
