"""Tests that long warnings are checked quickly: they become headers on the event loop."""

from __future__ import annotations

import sys
import time
import unicodedata

from tetrapod.generic.filters.warnings import _writable, warning_headers


def test_a_warning_of_a_megabyte_takes_a_few_milliseconds() -> None:
    text = "a, " * 350_000
    began = time.thread_time()
    headers = warning_headers([text])
    assert time.thread_time() - began < 0.03
    assert len(headers) == 1


def test_texts_with_control_characters_are_not_written() -> None:
    controls = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cc"}
    assert {chr(code) for code in range(0x3000) if not _writable(f"a{chr(code)}b")} == controls
