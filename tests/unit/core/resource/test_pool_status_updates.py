"""Updates of the status of a ResourcePoolStatusRequest, which is immutable once it is set."""

from __future__ import annotations

from tetrapod.core.resource.resource_pool_status_requests import validate_status

STORED = {"poolCount": 1, "pools": [{"driver": "d.example.com", "poolName": "p", "generation": 1}]}


def fields(status: dict[str, object] | None) -> list[str]:
    return [error.field for error in validate_status({"status": status}, {"status": STORED})]


def test_changed_status_is_also_validated() -> None:
    pools = [{"driver": "", "poolName": "p", "generation": 1}]
    assert fields({"poolCount": -1, "pools": pools}) == ["status", "status.poolCount", "status.pools[0].driver"]


def test_unchanged_parts_of_a_changed_status_are_not_validated() -> None:
    assert fields({**STORED, "validationError": "x"}) == ["status"]


def test_removed_status_is_rejected_once() -> None:
    assert fields(None) == ["status"]
    assert fields(STORED) == []
