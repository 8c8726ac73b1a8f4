"""Conditions of objects, which other programs may have stored with mistakes."""

from __future__ import annotations

from tetrapod.core.allocators.networks import is_ready
from tetrapod.machinery.conditions import find_condition


def test_a_condition_that_is_null_is_skipped() -> None:
    ready = {"type": "Ready", "status": "False"}
    assert find_condition({"status": {"conditions": [None, ready]}}, "Ready") == ready
    assert find_condition({"status": {"conditions": [None]}}, "Ready") is None


def test_addresses_are_allocated_from_a_service_cidr_whose_condition_is_null() -> None:
    assert is_ready({"metadata": {}, "status": {"conditions": [None]}})
    assert not is_ready({"metadata": {}, "status": {"conditions": [None, {"type": "Ready", "status": "False"}]}})
