"""Rows of Tables, whose ages are formatted when they are sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.table_rows import Row
from tetrapod.machinery.timed_cells import Elapsed, TimedCell, since
from tetrapod.machinery.timestamps import parse

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
CELLS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS
AGES = st.builds(Elapsed, st.floats(0, 2e9), TEXTS, TEXTS)


@given(st.lists(CELLS | AGES), st.lists(st.dictionaries(TEXTS, TEXTS)), st.floats(0, 4e9))
def test_an_encoded_row_has_all_cells_with_their_texts_at_that_time(
    cells: list[Any], conditions: list[dict[str, str]], now: float
) -> None:
    row = orjson.loads(Row.of(cells, conditions).encoded(now) + b"}")
    assert row["cells"] == [cell.text(now) if isinstance(cell, TimedCell) else cell for cell in cells]
    assert row.get("conditions", []) == conditions


@pytest.mark.parametrize(
    ("timestamp", "at", "text"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:05:03Z", "5m3s"),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z", "0s"),
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", "0s"),
        ("3020-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "<invalid>"),
    ],
)
def test_a_cell_shows_the_time_since_its_timestamp(timestamp: str, at: str, text: str) -> None:
    cell = since(timestamp, "3 (", " ago)")
    assert isinstance(cell, Elapsed)
    assert cell.text(parse(at).timestamp()) == f"3 ({text} ago)"


def test_a_cell_without_a_valid_timestamp_says_so() -> None:
    assert since(None) == since("") == "<unknown>"
    assert since("soon") == "<invalid>"
    assert since("soon", "3 (", " ago)") == "3 (<invalid> ago)"
