"""Tests of the quota usage of PersistentVolumeClaims."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.quota.usage import usage_of
from tetrapod.machinery.gvk import GroupResource

CLAIMS = GroupResource("", "persistentvolumeclaims")


@pytest.mark.parametrize(
    ("asked", "allocated", "storage"),
    [("1500m", None, "2"), ("1Gi", None, "1Gi"), ("1Gi", "2Gi", "2Gi"), ("3", "2500m", "3"), ("1", "2500m", "3")],
)
def test_storage_is_counted_in_whole_bytes_of_the_larger_of_what_is_asked_and_allocated(
    asked: str, allocated: Any, storage: str
) -> None:
    status = {"allocatedResources": {"storage": allocated}} if allocated else {}
    spec = {"storageClassName": "gold", "resources": {"requests": {"storage": asked}}}
    claim = {"metadata": {"name": "c"}, "spec": spec, "status": status}
    used = {name: str(quantity) for name, quantity in usage_of(CLAIMS, claim).items()}
    assert used["requests.storage"] == used["gold.storageclass.storage.k8s.io/requests.storage"] == storage
