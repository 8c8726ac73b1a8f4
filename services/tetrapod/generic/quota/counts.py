"""Counting objects, of whatever kind (upstream: pkg/quota/v1/generic, objectCountEvaluator)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.quantity import Quantity

ONE: Final = Quantity.from_int(1)


def count_name(resource: GroupResource) -> str:
    """What a quota calls the number of such objects."""
    return f"count/{resource}"
