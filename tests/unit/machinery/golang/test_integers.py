"""Tests of integers, which are parsed as by Go's strconv: any input yields its number or strconv's error text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.golang.integers import atoi, parse_int, parse_uint

LONG = "9" * 5000


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers_of_64_bits(number: int) -> None:
    assert parse_int(str(number)) == parse_int(f"{'-' if number < 0 else '+'}000{abs(number)}") == number


@pytest.mark.parametrize("text", ["0" * 5000 + "7", "7"])
def test_zeros_before_a_number_mean_nothing(text: str) -> None:
    assert parse_int(text) == parse_uint(text) == parse_uint(text, 16) == 7


@pytest.mark.parametrize("text", ["", "+", "a", "1_0", "1.0", " 1", "\u0661", "0x1"])
def test_invalid_numbers_are_rejected(text: str) -> None:
    for parse in (parse_int, parse_uint):
        with pytest.raises(ValueError, match=r"^strconv\.Parse(I|Ui)nt: parsing \".*\": invalid syntax$"):
            parse(text)


@pytest.mark.parametrize("text", [str(1 << 63), f"-{(1 << 63) + 1}", LONG, f"-{LONG}"])
def test_numbers_out_of_range_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"^strconv\.ParseInt: parsing .*: value out of range$"):
        parse_int(text)


@pytest.mark.parametrize(("text", "bits"), [(str(1 << 64), 64), (LONG, 64), ("65536", 16)])
def test_unsigned_numbers_out_of_range_are_rejected(text: str, bits: int) -> None:
    with pytest.raises(ValueError, match=r"^strconv\.ParseUint: parsing .*: value out of range$"):
        parse_uint(text, bits)


def test_errors_of_atoi_name_it() -> None:
    assert atoi("-7") == -7
    for text, reason in (("x", "invalid syntax"), (LONG, "value out of range")):
        with pytest.raises(ValueError, match=rf"^strconv\.Atoi: parsing .*: {reason}$"):
            atoi(text)


def test_an_unsigned_number_has_no_sign() -> None:
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_uint("+1")
