"""Rounding of the quantities in a ResourceList to thousandths. Upstream: SetDefaults_ResourceList."""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity


def round_up(resources: dict[str, Any]) -> None:
    """Round each quantity up to a thousandth, in place. Only values with the suffix n or u can be finer."""
    for name, value in resources.items():
        if isinstance(value, str) and value and value[-1] in "nu":
            resources[name] = str(Quantity.parse(value).round_up(-3))


def round_requirements(resources: Object) -> None:
    for name in ("limits", "requests"):
        if quantities := resources.get(name):
            round_up(quantities)
