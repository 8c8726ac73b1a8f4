"""Starts the controllers that `--controllers` selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tetrapod.generic.controllers import enabled
from tetrapod.generic.lifecycle import Lifecycle


class Controller(Protocol):
    """`name` is upstream's. `run` works until it is cancelled."""

    name: str

    async def run(self) -> None: ...


def start_controllers(controllers: Sequence[Controller], selection: Sequence[str], lifecycle: Lifecycle) -> None:
    """Start them in the background; they sync and recover by themselves, so readiness does not wait for them."""
    for controller in controllers:
        if enabled(controller.name, selection):
            lifecycle.background(f"controller/{controller.name}", controller.run())
