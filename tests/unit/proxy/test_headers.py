"""Tests of headers that pass through the proxy."""

from __future__ import annotations

import re

import httptools
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.proxy.headers import (
    Unsendable,
    escape_header_key,
    forwarded_headers,
    identity_headers,
    render_request,
    returned_headers,
    returned_trailers,
    upgrade_of,
)
from tetrapod.machinery.user import UserInfo

ALICE = UserInfo("alice", "u1", ("a", "system:authenticated"), {"authentication.kubernetes.io/node-name": ("n1", "n2")})


def test_identity_headers_are_replaced_and_credentials_dropped() -> None:
    sent = [
        (b"authorization", b"Bearer x"),
        (b"x-remote-user", b"admin"),
        (b"x-remote-group", b"system:masters"),
        (b"x-remote-extra-foo", b"bar"),
        (b"x-remote-uid", b"0"),
        (b"impersonate-user", b"bob"),
        (b"accept", b"*/*"),
    ]
    assert forwarded_headers(sent, ALICE, "10.1.1.1", "id") == [
        (b"accept", b"*/*"),
        (b"x-forwarded-for", b"10.1.1.1"),
        (b"x-remote-user", b"alice"),
        (b"x-remote-uid", b"u1"),
        (b"x-remote-group", b"a"),
        (b"x-remote-group", b"system:authenticated"),
        (b"x-remote-extra-authentication.kubernetes.io%2Fnode-name", b"n1"),
        (b"x-remote-extra-authentication.kubernetes.io%2Fnode-name", b"n2"),
        (b"audit-id", b"id"),
    ]


def test_hop_by_hop_headers_are_dropped() -> None:
    sent = [
        (b"connection", b"X-Private, keep-alive"),
        (b"x-private", b"1"),
        (b"keep-alive", b"300"),
        (b"te", b"gzip"),
        (b"transfer-encoding", b"chunked"),
        (b"upgrade", b"h2c"),
        (b"x-kept", b"1"),
    ]
    assert forwarded_headers(sent, UserInfo("u"), "", "") == [(b"x-kept", b"1"), (b"x-remote-user", b"u")]
    assert returned_headers([*sent, (b"date", b"today"), (b"content-length", b"3")]) == [
        (b"x-kept", b"1"),
        (b"content-length", b"3"),
    ]


def test_trailers_are_asked_for_and_announced_on_both_sides() -> None:
    assert forwarded_headers([(b"te", b"gzip, trailers")], UserInfo("u"), "", "") == [
        (b"te", b"trailers"),
        (b"x-remote-user", b"u"),
    ]
    assert returned_headers([(b"trailer", b"X-Sum"), (b"trailer", b"X-More")]) == [(b"trailer", b"X-Sum, X-More")]
    assert returned_trailers([(b"x-sum", b"7"), (b"content-length", b"9"), (b"transfer-encoding", b"chunked")]) == [
        (b"x-sum", b"7")
    ]


def test_the_chain_of_addresses_grows() -> None:
    sent = [(b"x-forwarded-for", b"1.2.3.4"), (b"x-forwarded-for", b"5.6.7.8")]
    assert (b"x-forwarded-for", b"1.2.3.4, 5.6.7.8, 9.9.9.9") in forwarded_headers(sent, ALICE, "9.9.9.9", "")


def test_an_upgrade_needs_both_headers() -> None:
    assert upgrade_of([(b"connection", b"keep-alive, Upgrade"), (b"upgrade", b"websocket")]) == b"websocket"
    assert upgrade_of([(b"upgrade", b"websocket")]) == b""


@given(st.text(min_size=1))
def test_extra_keys_survive_the_way(key: str) -> None:
    from urllib.parse import unquote

    escaped = escape_header_key(key)
    assert unquote(escaped) == key
    assert escaped.isascii()
    assert not set(escaped) & set(' :/()\r\n"')


NAMES = st.text(st.one_of(st.sampled_from("\r\n\t\0 :%"), st.characters(exclude_categories=["Cs"])))


@given(NAMES, NAMES, st.lists(NAMES), st.dictionaries(NAMES.filter(bool), st.lists(NAMES)))
def test_user_names_cannot_inject_headers(name: str, uid: str, groups: list[str], extra: dict[str, list[str]]) -> None:
    """A user name that no header can hold is not sent; any other name is read back unchanged."""
    user = UserInfo(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})
    try:
        headers = identity_headers(user)
    except Unsendable:
        everything = (name, uid, *groups, *(value for values in extra.values() for value in values))
        assert any(re.search("[\0-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$", value) for value in everything)
        return
    read: list[tuple[bytes, bytes]] = []

    class Reader:
        def on_header(self, header: bytes, value: bytes) -> None:
            read.append((header, value))

    httptools.HttpRequestParser(Reader()).feed_data(render_request("GET", "/", "localhost", headers, b""))
    assert read[1:] == headers
