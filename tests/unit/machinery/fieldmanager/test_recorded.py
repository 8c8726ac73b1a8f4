"""Tests of managed fields after updates and applies of built-in kinds, as recorded from a real server
(`recorded.jsonl`).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.manager import FieldManager
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.types import schema_for

CASES = [orjson.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_bytes().splitlines()]


def manager_of(case: dict[str, Any]) -> FieldManager:
    kind = GroupVersionKind(*case["kind"])
    reset = "spec" if case.get("subresource") == "status" else "status"
    return FieldManager(
        kind,
        lambda version: schema_for(GroupVersion.parse(version).with_kind(kind.kind)),
        reset_fields={kind.api_version: fieldset.exclude(fieldset.of_fields([(reset,)]))},
        subresource=case.get("subresource", ""),
    )


def owners(entries: list[dict[str, Any]]) -> list[bytes]:
    """Return entries in a comparable form: only the presence of the time counts."""
    plain = [{**entry, "time": "T"} if "time" in entry else entry for entry in entries]
    return sorted(orjson.dumps(entry, option=orjson.OPT_SORT_KEYS) for entry in plain)


def assert_within(part: Any, whole: Any, path: str = "") -> None:
    """Report whether everything in `part` is in `whole`, which may have defaults in addition; null and an empty list
    count as missing.
    """
    if isinstance(part, dict):
        for name, value in part.items():
            if value not in (None, []):
                assert_within(value, whole.get(name), f"{path}.{name}")
    elif isinstance(part, list) and whole is not None:
        assert len(part) == len(whole), path
        for i, (left, right) in enumerate(zip(part, whole, strict=True)):
            assert_within(left, right, f"{path}[{i}]")
    else:
        assert part == whole, path


@pytest.mark.parametrize("case", [c for c in CASES if "new" in c], ids=lambda c: c["step"])
def test_an_update_leaves_the_recorded_owners(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case)
    updated = manager_of(case).update(case["live"], case["new"], case["manager"])
    assert owners(updated["metadata"].get("managedFields", [])) == owners(case["entries"])
    assert case == before


@pytest.mark.parametrize("case", [c for c in CASES if "config" in c and "message" not in c], ids=lambda c: c["step"])
def test_an_apply_leaves_the_recorded_owners_and_object(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case)
    manager = manager_of(case)
    merged = manager.apply(case.get("live"), case["config"], case["manager"], force=case.get("force", False))
    assert owners(merged["metadata"].get("managedFields", [])) == owners(case["entries"])
    if "object" in case:
        assert_within({name: merged.get(name) for name in case["object"]}, case["object"])
    assert case == before
    again = manager.apply(
        {**merged, "metadata": {**merged["metadata"], "uid": "u"}}, case["config"], case["manager"], force=False
    )
    assert owners(again["metadata"].get("managedFields", [])) == owners(merged["metadata"].get("managedFields", []))


@pytest.mark.parametrize("case", [c for c in CASES if "message" in c], ids=lambda c: c["step"])
def test_a_rejected_apply_has_the_recorded_text(case: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as raised:
        manager_of(case).apply(case.get("live"), case["config"], case["manager"], force=False)
    assert raised.value.message == case["message"]
    assert raised.value.code == (409 if case["message"].startswith("Apply failed") else 400)
    if raised.value.code == 409:
        assert raised.value.details is not None
        assert all(cause["reason"] == "FieldManagerConflict" for cause in raised.value.details["causes"])
