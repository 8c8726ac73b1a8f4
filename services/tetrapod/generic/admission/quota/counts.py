"""Quotas on the number of objects of any kind (upstream: pkg/quota/v1/generic, objectCountEvaluator)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.quantity import Quantity

ONE: Final = Quantity.from_int(1)


def count_name(resource: GroupResource) -> str:
    """Return the quota resource name for the number of these objects."""
    return f"count/{resource}"
