"""Rows of Tables that the entries of stored objects keep."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tetrapod.core.v1.pods.definition import definition
from tetrapod.core.v1.pods.strategy import PodStrategy
from tetrapod.core.v1.pods.table import TABLE
from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.endpoints.tables import Tables
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import TableConvertor
from tetrapod.machinery.timestamps import parse

METADATA = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "7"}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": METADATA,
    "spec": {"containers": [{"name": "c"}]},
    "status": {"phase": "Running"},
}
CONVERSION = Conversion(definition(defaultdict(PodStrategy)), "v1")


def _entry() -> StoredEntry:
    return StoredEntry.from_served("ns/a", orjson.dumps(POD), 7)


def _row(entry: StoredEntry, table: TableConvertor = TABLE, include: str = "Metadata") -> Any:
    return orjson.loads(Tables(table, "v1", include).row_of(entry, CONVERSION))


class _Clock:
    """The time that the server sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = ""
        monkeypatch.setattr(time, "time", lambda: parse(self._now).timestamp())

    def set(self, now: str) -> None:
        self._now = now


def _counted(calls: list[str]) -> TableConvertor:
    def row(obj: Object) -> list[Any]:
        calls.append(obj["metadata"]["name"])
        return TABLE.row(obj)

    return replace(TABLE, row=row)


def test_the_age_in_a_kept_row_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, entry, calls = _Clock(monkeypatch), _entry(), list[str]()
    table = _counted(calls)
    ages = []
    for now in ("2026-01-01T00:00:30Z", "2026-01-01T00:10:00Z", "2026-01-03T00:00:00Z"):
        clock.set(now)
        ages.append(_row(entry, table)["cells"][4])
    assert ages == ["30s", "10m", "2d"]
    assert calls == ["a"]


def test_a_kept_row_serves_each_form_of_its_object() -> None:
    entry = _entry()
    for _ in range(2):
        assert _row(entry)["object"] == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": METADATA,
        }
        assert _row(entry, include="Object")["object"] == POD
        assert _row(entry, include="None")["object"] is None


def test_a_row_of_other_columns_replaces_the_kept_one() -> None:
    entry = _entry()
    other = TableConvertor(TABLE.columns[:1], lambda obj: [obj["metadata"]["name"] + "!"])
    assert _row(entry)["cells"][0] == "a"
    assert _row(entry, other)["cells"] == ["a!"]
    assert _row(entry)["cells"][0] == "a"


def test_cells_that_depend_on_more_than_the_object_are_computed_for_each_row() -> None:
    entry, calls = _entry(), list[str]()
    table = replace(_counted(calls), lasting=False)
    assert _row(entry, table) == _row(entry, table)
    assert calls == ["a", "a"]
