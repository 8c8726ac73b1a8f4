"""Quantities of a ResourceList are kept to the milli (upstream: SetDefaults_ResourceList)."""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.quantity import Quantity


def round_up(resources: dict[str, Any]) -> None:
    """Round each quantity up to a thousandth, in place. Only what is written finer than that is looked at."""
    for name, value in resources.items():
        if isinstance(value, str) and value and value[-1] in "nu":
            resources[name] = str(Quantity.parse(value).round_up(-3))
