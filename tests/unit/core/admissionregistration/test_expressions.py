"""Tests of errors for expressions in admission policies that cannot be compiled."""

from __future__ import annotations

import pytest

from tetrapod.core.admissionregistration.expressions import Expressions


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "bool('maybe')",
            "p: Internal error: program instantiation failed: type conversion error from 'string' to 'bool'",
        ),
        ("int('x')", "p: Invalid value: \"int('x')\": must evaluate to bool but got int"),
        (
            "duration('1s')",
            "p: Invalid value: \"duration('1s')\": must evaluate to bool but got google.protobuf.Duration",
        ),
        (
            "[timestamp(0)]",
            'p: Invalid value: "[timestamp(0)]": must evaluate to bool but got list(google.protobuf.Timestamp)',
        ),
    ],
)
def test_a_wrong_type_is_reported_before_a_constant_part_that_fails(expression: str, message: str) -> None:
    assert [str(error) for error in Expressions(params=False, composed=False).condition(expression, "p")] == [message]
