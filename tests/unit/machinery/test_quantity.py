"""Tests of quantities: their notation follows upstream, and sums are exact."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.quantity import FORMAT_TEXT, SUFFIX_TEXT, Quantity, canonical, decimal_text

QUANTITIES = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**19),
    st.just("") | st.integers(0, 10**6).map(lambda n: f".{n}"),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "e3", "E-3", "e+6"]),
)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("1.5Gi", "1536Mi"),
        ("0.1", "100m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("10Ei", "9223372036854775807"),
        ("1e3", "1e3"),
        ("12E3", "12E3"),
        ("15E-1", "1500e-3"),
        ("+2", "+2"),
        ("5.", "5."),
        ("1024Ki", "1Mi"),
        ("1030Ki", "1030Ki"),
        ("0.5Ki", "512"),
        ("1.3Ki", "1331200m"),
        ("000", "0"),
        (".5", "500m"),
        ("-1.5", "-1500m"),
        ("3.333333", "3.333333"),
        ("1e-2000000000", "1e-9"),
        (0.5, "500m"),
        (2, "2"),
        (None, "0"),
    ],
)
def test_quantities_are_stored_in_canonical_form(sent: object, kept: str) -> None:
    assert canonical(sent) == kept


@pytest.mark.parametrize(
    ("text", "message"),
    [("", FORMAT_TEXT), ("ten", FORMAT_TEXT), ("1.2.3", FORMAT_TEXT), ("1ki", SUFFIX_TEXT), ("1e", SUFFIX_TEXT)],
)
def test_malformed_quantities_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        Quantity.parse(text)
    assert str(raised.value) == message


@given(QUANTITIES)
def test_the_canonical_form_is_the_same_amount_and_stays(text: str) -> None:
    quantity = Quantity.parse(text)
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(QUANTITIES, QUANTITIES)
def test_sums_and_differences_are_exact(a: str, b: str) -> None:
    left, right = Quantity.parse(a), Quantity.parse(b)
    assert left + right - right == left
    assert (left < right) == (Fraction(left.nano) < Fraction(right.nano))


def test_values_round_up() -> None:
    assert Quantity.parse("1500m").value == 2
    assert Quantity.parse("100u").milli_value == 1
    assert str(Quantity.parse("100u").round_up(-3)) == "1m"
    assert str(Quantity.parse("1e3").round_up(-3)) == "1e3"
    assert Quantity.parse("1500m").as_int64() is None


@pytest.mark.parametrize(("text", "value"), [("1E", 0), ("1000P", 0), ("12345678901234567890", 4807115922877858896)])
def test_thousandths_beyond_an_int64_are_those_of_upstream_also_before_it_is_printed(text: str, value: int) -> None:
    quantity = Quantity.parse(text)
    before = quantity.milli_value
    str(quantity)
    assert (before, quantity.milli_value) == (value, value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1200m", "1.200"),
        ("1.50", "1.50"),
        ("-1.5", "-1.5"),
        ("1k", "1000"),
        ("2Ki", "2048"),
        ("1.5Ki", "1536.000000000"),
    ],
)
def test_the_decimal_form_has_the_digits_that_were_given(text: str, shown: str) -> None:
    assert decimal_text(text) == shown


def test_a_sum_takes_the_notation_of_what_was_there() -> None:
    assert str(Quantity.parse("1Gi") + Quantity.parse("1024Mi")) == "2Gi"
    assert str(Quantity.parse("0") + Quantity.parse("512Mi")) == "512Mi"
