"""Tests of query parsing: as by Go's net/url, in linear time."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.growth import assert_linear
from tetrapod.machinery.golang.query import MOST_PARAMETERS, Query, encoded_query, query_pairs, unescape

_PIECES = [
    "%ff",
    "%FE",
    "%c3",
    "%a9",
    "%3D",
    "%3d",
    "%26",
    "=",
    "&",
    "a",
    "+",
    "%25",
    "b",
    "é",
    "%e2%82",
    "%00",
    "\x01",
    "%C3%A9",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_well_formed_queries_are_decoded_as_python_does(query: str) -> None:
    assert query_pairs(query) == parse_qsl(query, keep_blank_values=True)


@given(
    st.lists(
        st.sampled_from(["%41", "%0a", "%3D", "=", "%ff", "_", " ", "\r\n", "%0D%0A", "%25", "\xe9"]), max_size=12
    ).map("".join)
)
def test_escapes_are_decoded_as_python_does(text: str) -> None:
    raw = text.encode("latin-1")
    assert unescape(raw) == unquote_to_bytes(raw)


def test_a_query_of_more_parameters_than_go_accepts_is_empty() -> None:
    """Go 1.26's url.ParseQuery returns an error, which upstream ignores."""
    assert len(Query("&".join(["a=1"] * MOST_PARAMETERS)).pairs) == MOST_PARAMETERS
    assert Query("&".join(["watch=1"] * (MOST_PARAMETERS + 1))).values == {}


@pytest.mark.parametrize("piece", ["a=%20&", "%22", "&", "a%26=%ff&", "a=1;", "%zz&", "a=b+c&"])
def test_parsing_takes_linear_time(piece: str) -> None:
    assert_linear(Query, lambda size: "x=" + piece * size)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a=1&b=%3B", [("a", "1"), ("b", ";")]),
        ("a=1;b=2&c=3", [("c", "3")]),
        ("a=%zz&b=%4&c=%41", [("c", "A")]),
        ("a&a=1&=x", [("a", ""), ("a", "1"), ("", "x")]),
    ],
)
def test_malformed_parameters_are_ignored(query: str, expected: list[tuple[str, str]]) -> None:
    assert query_pairs(query) == expected


def test_a_repeated_parameter_has_a_first_value_and_a_list() -> None:
    query = "a=1&b=&a=2;x&a=3&%zz=4&b=5"
    assert Query(query).values == {"a": "1", "b": ""}
    assert Query(query).lists == {"a": ["1", "3"], "b": ["", "5"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ""),
        ("b=2&a=1&a=0&c=%20x+y&d&e=%zz;f=1&=3", "=3&a=1&a=0&b=2&c=+x+y&d="),
        ("x=a%2Fb:c,d!*'()~-._", "x=a%2Fb%3Ac%2Cd%21%2A%27%28%29~-._"),
        ("a=%ff%00&&b==c", "a=%FF%00&b=%3Dc"),
    ],
)
def test_a_query_is_encoded_as_go_does(query: str, expected: str) -> None:
    assert encoded_query(query) == expected
