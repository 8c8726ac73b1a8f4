"""Tests of numbers converted from a map to a struct, as by Go."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.schema.number_conversion import as_filled
from tetrapod.machinery.types.definitions import schema_for


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": 2}, {"replicas": 2}),
        ({"replicas": 2.0}, {"replicas": 2}),
        ({"replicas": 2.5}, {"replicas": 2.5}),
        ({"replicas": 3_000_000_000}, {"replicas": -1294967296}),
        ({"replicas": 9e18}, {"replicas": -494665728}),
        ({"replicas": 1e19}, {"replicas": 0}),
        ({"paused": 1.0}, {"paused": 1.0}),
        ({"strategy": {"rollingUpdate": {"maxSurge": 1.0}}}, {"strategy": {"rollingUpdate": {"maxSurge": 1}}}),
        ({"template": {"spec": {"overhead": {"cpu": 1e19}}}}, {"template": {"spec": {"overhead": {"cpu": 10**19}}}}),
        (
            {"template": {"spec": {"overhead": {"cpu": 2.0**63}}}},
            {"template": {"spec": {"overhead": {"cpu": 9223372036854776000}}}},
        ),
        ({"template": {"spec": {"nodeSelector": {"a": 1.0}}}}, {"template": {"spec": {"nodeSelector": {"a": 1.0}}}}),
    ],
)
def test_numbers_are_as_their_fields_take_them(spec: Any, expected: Any) -> None:
    node = schema_for(GroupVersionKind("apps", "v1", "Deployment"))
    assert repr(as_filled({"spec": spec}, node)) == repr({"spec": expected})
