"""Tests of the validation of Nodes."""

from __future__ import annotations

from tetrapod.core.v1.nodes.validation import validate


def test_a_node_declares_no_feature_of_an_endless_name() -> None:
    (error,) = validate({"metadata": {}, "status": {"declaredFeatures": ["A" * 254]}})
    assert error.detail.endswith("must be no more than 253 characters")
