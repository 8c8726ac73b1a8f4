"""Tests of Warning headers: which warnings are written, truncated or left out."""

from __future__ import annotations

from tetrapod.generic.filters.warnings import warning_headers


def test_warnings_with_control_characters_are_not_sent() -> None:
    assert warning_headers(
        ["two\nlines", "tab\there", "del\x7f", "", 'a "quoted" \\ text', "no-break\u00a0space", "one", "one"]
    ) == [
        (b"warning", b'299 - "a \\"quoted\\" \\\\ text"'),
        (b"warning", '299 - "no-break\u00a0space"'.encode()),
        (b"warning", b'299 - "one"'),
    ]


def test_beyond_the_limit_all_are_cut_and_the_last_ones_dropped() -> None:
    headers = warning_headers(["x" * 4096] + [f"{n:02}" + "y" * 1000 for n in range(30)])
    assert headers[0] == (b"warning", b'299 - "' + b"x" * 256 + b'"')
    assert len(headers) == 16  # 16 times 256 are 4,096
    assert {len(value) for _, value in headers} == {256 + len('299 - ""')}


def test_a_control_character_behind_the_cut_does_no_harm() -> None:
    headers = warning_headers(["x" * 300 + "\n", "y" * 5000])
    assert [value[:9] for _, value in headers] == [b'299 - "xx', b'299 - "yy']
