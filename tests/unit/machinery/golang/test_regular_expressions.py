"""Tests of patterns in Go's dialect: those that RE2 compiles in quadratic time are rejected."""

from __future__ import annotations

import time

import pytest

from support.growth import assert_linear
from tetrapod.machinery.golang.regular_expressions import BadPattern, compile_pattern, optional_parts


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("a?", 1),
        ("a{0,3}b{2}c*d+", 3),
        ("(a?b{1,3}){5}", 15),
        ("(?:a?){2,4}", 6),
        ("(?i)a?", 1),
        (r"\?\{1,3\}\(", 0),
        ("[?(]{1,2}", 1),
        ("(?:[)]a?){3}", 3),
        ("[]?]a?", 1),
        ("[[:alpha:]?]?", 1),
        ("a{,5}", 0),
        ("a?[?????", 1),
        (")a?", 1),
    ],
)
def test_optional_parts_are_counted_with_their_repetitions(pattern: str, count: int) -> None:
    assert optional_parts(pattern) == count


@pytest.mark.parametrize(
    "pattern",
    [
        "x{0,1000}" * 300,
        "x{1,1000}" * 300,
        "a?" * 150_000,
        "(?:" + "a?" * 4_900 + "){0,30}",
        "(?:[)]" + "a?" * 4_900 + "){30}",
        "(?:(?:a{0,10}){0,10}){0,10}" * 50,
    ],
    ids=lambda pattern: pattern[:16],
)
def test_patterns_with_very_many_optional_parts_are_rejected_at_once(pattern: str) -> None:
    began = time.process_time()
    with pytest.raises(BadPattern, match="expression too large"):
        compile_pattern(pattern)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("pattern", ["x{0,1000}" * 10, "a?" * 10_000, "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"])
def test_patterns_with_fewer_optional_parts_are_compiled(pattern: str) -> None:
    assert compile_pattern(pattern).search("a") is not None


@pytest.mark.parametrize("piece", ["a?", "(", ")", "[", "[a]", "{", "{1,2}", "\\", "a{1,2}"])
def test_optional_parts_are_counted_in_linear_time(piece: str) -> None:
    assert_linear(optional_parts, lambda size: piece * size)


def test_nested_repetitions_are_counted_in_linear_time() -> None:
    assert_linear(optional_parts, lambda size: "(" * size + "a?" + "){9999}" * size)


@pytest.mark.parametrize("pattern", [r"\C", r"a\\\C"])
def test_a_pattern_cannot_match_a_single_byte(pattern: str) -> None:
    with pytest.raises(BadPattern) as raised:
        compile_pattern(pattern)
    assert str(raised.value) == r"error parsing regexp: invalid escape sequence: `\C`"


def test_an_escaped_backslash_before_a_letter_is_accepted() -> None:
    assert compile_pattern(r"a\\C").search("a\\C")
