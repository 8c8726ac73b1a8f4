"""The rows of pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from tetrapod.core.v1.pods.definition import definition
from tetrapod.core.v1.pods.strategy import PodStrategy
from tetrapod.core.v1.pods.table import TABLE
from tetrapod.core.v1.pods.table_fields import PodFields
from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.endpoints.tables import Tables
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.machinery.gvk import Object

RECORDINGS = Path(__file__).parents[3] / "contract" / "recordings"


def _pods(value: Any) -> Iterator[Object]:
    """Yield the pods in recorded answers."""
    if isinstance(value, list):
        for item in value:
            yield from _pods(item)
    elif isinstance(value, dict):
        if value.get("kind") == "Pod" and isinstance(value.get("status"), dict) and "name" in value["metadata"]:
            yield value
        for item in value.values():
            yield from _pods(item)


def _cells(pod: Object) -> list[Any]:
    conditions = TABLE.conditions(pod) if TABLE.conditions is not None else []
    return [*TABLE.row(pod), conditions]


def test_rows_of_the_decoded_fields_equal_those_of_whole_pods() -> None:
    states = set()
    for recording in sorted(RECORDINGS.glob("*pod*.json")):
        for pod in _pods(orjson.loads(recording.read_bytes())):
            pod["metadata"].pop("creationTimestamp", None)  # a placeholder in recordings
            cells = _cells(pod)
            states.add(cells[2])
            assert _cells(msgspec.to_builtins(msgspec.json.decode(orjson.dumps(pod), type=PodFields))) == cells
    assert len(states) > 3, states


@pytest.mark.parametrize("status", [{"phase": "Running"}, {"phase": "Running", "conditions": "malformed"}])
def test_a_row_is_made_of_some_fields_unless_one_is_malformed(status: Object, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "resourceVersion": "7"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        "status": status,
    }
    parsed: list[str] = []
    peek = StoredEntry.peek

    def counted(entry: StoredEntry) -> Object:
        parsed.append(entry.key)
        return peek(entry)

    monkeypatch.setattr(StoredEntry, "peek", counted)
    entry = StoredEntry.from_served("ns/a", orjson.dumps(pod), 7)
    tables, conversion = Tables(TABLE, "v1", "None"), Conversion(definition(defaultdict(PodStrategy)), "v1")
    rows = [orjson.loads(tables.row_of(entry, conversion)) for _ in range(2)]
    assert rows[0] == rows[1]
    assert rows[0]["cells"][0] == "a"
    assert parsed == (["ns/a"] if "conditions" in status else [])
