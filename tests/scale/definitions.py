"""A run: many definitions of custom resources without objects."""

from __future__ import annotations

from pathlib import Path

from bench.definitions import Definitions
from bench.targets import Target
from scale.results import Figures, figures


def run(key: str, target: Target, count: int, directory: Path) -> Figures:
    """Create the definitions, restart the server, and return what was measured.

    Raises:
        NotStarted: the server did not start.
        Rejected: the server did not serve a definition.
    """
    target.fresh()
    values: dict[str, float] = {}
    Definitions(target, count, directory, values.__setitem__).measure()
    return figures("definitions", count, key, **{name.replace("-", "_"): value for name, value in values.items()})
