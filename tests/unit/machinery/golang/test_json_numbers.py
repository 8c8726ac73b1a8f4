"""Tests of numbers: they are written as by Go's encoder, and read as by its decoder."""

from typing import Any

import orjson
import pytest

from tetrapod.machinery.field import format_value
from tetrapod.machinery.golang.json_numbers import integral, without_exponents


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (1.0, 1),
        (-0.0, 0),
        (1e16, 10**16),
        (-1e18, -(10**18)),
        (123456789012345678.0, 123456789012345680),
        (9223372036854774784.0, 9223372036854775000),
        (9223372036854775808.0, 9223372036854775808.0),
        (1.5, 1.5),
    ],
)
def test_whole_floats_are_integers_of_the_shortest_digits(sent: float, kept: float) -> None:
    [found] = integral([sent])
    assert (found, type(found)) == (kept, type(kept))


def test_values_in_rejections_are_written_so_too() -> None:
    assert (
        format_value({"a": [1.0, -0.0, 1.5, 1e20, 10.05, "1.0"]})
        == '{"a":[1,-0,1.5,100000000000000000000,10.05,"1.0"]}'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e20, "100000000000000000000"),
        (18446744073709551615.0, "18446744073709552000"),
        (-9.5e18, "-9500000000000000000"),
        (1e-6, "0.000001"),
        (-1.5e-6, "-0.0000015"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        ('a "1e+20', '"a \\"1e+20"'),
    ],
)
def test_exponents_are_shown_where_go_shows_them(value: Any, text: str) -> None:
    assert without_exponents(orjson.dumps({"a": [value, "1e-6"]})).decode() == f'{{"a":[{text},"1e-6"]}}'
