"""What claims of devices take of a quota."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.quota.devices import CLAIMS
from tetrapod.core.quota.usage import tracked, usage_of

GOLD, TIN = "gold.deviceclass.resource.k8s.io/devices", "tin.deviceclass.resource.k8s.io/devices"


def device(name: str, count: int = 1, mode: str = "ExactCount") -> Any:
    return {"deviceClassName": name, "allocationMode": mode, "count": count}


@pytest.mark.parametrize(
    ("requests", "gold", "tin"),
    [
        ([{"name": "a", "exactly": device("gold")}], "1", None),
        ([{"name": "a", **device("gold", 3)}], "3", None),  # as v1beta1 says it
        ([{"name": "a", "exactly": device("gold", 2)}, {"name": "b", "exactly": device("gold", 3)}], "5", None),
        ([{"name": "a", "exactly": device("gold", mode="All")}], "32", None),
        ([{"name": "a", "firstAvailable": [device("gold", 2), device("tin", 4), device("gold", 1)]}], "2", "4"),
        ([{"name": "a", "exactly": device("gold", mode="Unknown")}], "0", None),
    ],
)
def test_devices_count_by_class_and_of_alternatives_the_most(requests: Any, gold: str, tin: str | None) -> None:
    used = usage_of(CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})
    assert str(used[GOLD]) == gold
    assert used.get(TIN) is None if tin is None else str(used[TIN]) == tin
    assert str(used["count/resourceclaims.resource.k8s.io"]) == "1"


def test_a_quota_on_devices_counts_claims() -> None:
    assert tracked([GOLD]) == {CLAIMS}
    assert tracked(["requests.deviceclass.resource.kubernetes.io/gold"]) == {CLAIMS, ("", "pods")}
