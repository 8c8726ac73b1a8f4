"""Tests of continue tokens: upstream's format and errors."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.storage.cacher.continue_token import Continuation, decode, encode

PREFIX = "invalid continue token: continue key is not valid: "


def test_a_token_is_encoded_as_by_upstream() -> None:
    token = encode(Continuation("name\0", 42))
    assert base64.urlsafe_b64decode(token + "==") == b'{"v":"meta.k8s.io/v1","rv":42,"start":"name\\u0000"}'
    assert "=" not in token


NAMES = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}[a-z0-9]", fullmatch=True)


@given(NAMES, st.none() | NAMES, st.integers(1, 1 << 62) | st.just(-1))
def test_continue_tokens_survive_a_round_trip(name: str, namespace: str | None, revision: int) -> None:
    start = f"{namespace}/{name}\0" if namespace else f"{name}\0"
    assert decode(encode(Continuation(start, revision))) == (start, revision)


def raw(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("nonsense", r"invalid character '\u009e' looking for beginning of value"),
        ("abc", "invalid character 'i' looking for beginning of value"),
        ("!!", "illegal base64 data at input byte 0"),
        ("e30", "server does not recognize this encoded version "),
        ("z-w", "invalid character 'Ï' looking for beginning of value"),
        (raw("'"), r"invalid character '\'' looking for beginning of value"),
        (raw('{"v":"meta.k8s.io/v1",'), "unexpected end of JSON input"),
        (raw("[]"), "json: cannot unmarshal array into Go value of type storage.continueToken"),
        (raw("1.5"), "json: cannot unmarshal number into Go value of type storage.continueToken"),
        (raw("[" * 20_000), "invalid character '[' exceeded max depth"),
        (raw("null"), "server does not recognize this encoded version "),
        (raw('{"v":1.5}'), "json: cannot unmarshal number into Go struct field continueToken.v of type string"),
        (raw('{"rv":"x"}'), "json: cannot unmarshal string into Go struct field continueToken.rv of type int64"),
        (raw('{"rv":1.5}'), "json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64"),
        (raw('{"rv":true}'), "json: cannot unmarshal bool into Go struct field continueToken.rv of type int64"),
        (
            raw('{"rv":99999999999999999999}'),
            "json: cannot unmarshal number 99999999999999999999 into Go struct field continueToken.rv of type int64",
        ),
        (raw('{"v":"v1alpha1","rv":1,"start":"a"}'), "server does not recognize this encoded version v1alpha1"),
        (raw('{"v":"meta.k8s.io/v1","start":"a"}'), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (raw('{"v":"meta.k8s.io/v1","rv":1}'), "encoded start key empty (version meta.k8s.io/v1)"),
        (raw('{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}'), "../secrets/a"),
        (raw('{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}'), "a//b"),
        (raw('{"v":"meta.k8s.io/v1","rv":1,"start":"//"}'), "//"),
        (raw('{"v":"meta.k8s.io/v1","rv":1,"start":"//b"}'), "//b"),
    ],
)
def test_an_invalid_token_is_rejected_with_upstreams_message(token: str, why: str) -> None:
    with pytest.raises(ValueError) as rejected:
        decode(token)
    assert str(rejected.value) == PREFIX + why


def test_a_token_may_begin_at_the_root() -> None:
    assert decode(raw('{"v":"meta.k8s.io/v1","rv":1,"start":"/"}')) == ("", 1)
    assert decode(raw('{"v":"meta.k8s.io/v1","rv":1,"start":"/a"}')) == ("a", 1)


@given(st.text(max_size=40))
def test_arbitrary_tokens_are_rejected(token: str) -> None:
    try:
        decode(token)
    except ValueError as error:
        assert str(error).startswith(PREFIX)
