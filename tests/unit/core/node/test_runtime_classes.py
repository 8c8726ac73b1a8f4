"""Tests of the validation of RuntimeClasses."""

from __future__ import annotations

from tetrapod.core.node.runtime_classes import validate


def test_tolerations_of_a_runtime_class_differ_by_more_than_their_time() -> None:
    same_but_for_time = [
        {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": n} for n in (1, 2)
    ]
    (error,) = validate({"handler": "h", "metadata": {}, "scheduling": {"tolerations": same_but_for_time}})
    shown = {"Key": "k", "Operator": "Exists", "Value": "", "Effect": "NoExecute", "TolerationSeconds": 2}
    assert (error.field, error.type, error.value) == ("scheduling.tolerations[1]", "FieldValueDuplicate", shown)
