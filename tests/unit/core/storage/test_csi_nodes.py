"""Tests of the validation of CSINodes."""

from __future__ import annotations

from tetrapod.core.storage.csi_nodes import validate


def test_a_driver_named_twice_is_reported_before_its_topology_keys() -> None:
    driver = {"name": "d", "nodeID": "n", "topologyKeys": ["/x"]}
    found = [(error.field, error.type) for error in validate({"spec": {"drivers": [driver, driver]}})]
    keys = ("spec.drivers[1]", "FieldValueInvalid")
    assert found == [("spec.drivers[0]", "FieldValueInvalid"), ("spec.drivers[1].name", "FieldValueDuplicate"), keys]
