"""Tests of resource versions, which are parsed like Go's unsigned integers."""

from __future__ import annotations

import pytest

from tetrapod.generic.storage.resource_version import LARGEST, parse_resource_version


@pytest.mark.parametrize(
    ("text", "version"), [("", 0), ("0", 0), ("007", 7), ("0" * 5000 + "1", 1), (str(LARGEST), LARGEST)]
)
def test_numbers_without_a_sign(text: str, version: int) -> None:
    assert parse_resource_version(text) == version


@pytest.mark.parametrize("text", ["garbage", "-1", "+5", "0x5", "1_0", " ", "1.0", "\u0661", 'a"b'])
def test_invalid_resource_versions_are_rejected(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^resourceVersion: Invalid value: .* strconv\.ParseUint: parsing .*: invalid syntax$"
    ):
        parse_resource_version(text)


@pytest.mark.parametrize("text", [str(LARGEST + 1), "9" * 5000])
def test_numbers_out_of_range_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r": value out of range$"):
        parse_resource_version(text)


def test_texts_are_quoted_as_go_does() -> None:
    with pytest.raises(ValueError) as raised:
        parse_resource_version('a"\x00')
    assert (
        str(raised.value)
        == r'resourceVersion: Invalid value: "a\"\x00": strconv.ParseUint: parsing "a\"\x00": invalid syntax'
    )
