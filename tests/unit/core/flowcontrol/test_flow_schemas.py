"""Tests of the validation of FlowSchemas."""

from __future__ import annotations

from tetrapod.core.flowcontrol.flow_schemas import validate_status
from tetrapod.machinery.gvk import Object


def test_a_condition_that_a_flow_schema_has_twice_is_reported_before_its_missing_type() -> None:
    new: Object = {"status": {"conditions": [{}, {}]}}
    found = [(error.field, error.type) for error in validate_status(new, {})]
    twice, missing = "FieldValueDuplicate", "FieldValueRequired"
    first, second = "status.conditions[0].type", "status.conditions[1].type"
    assert found == [(first, missing), (second, twice), (second, missing)]
