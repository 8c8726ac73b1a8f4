"""The selection of controllers by `--controllers`. They run in the leading replica only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.server.controllers import enabled


class Controller(Protocol):
    """A controller with its upstream name. `run` works until it is cancelled."""

    name: str

    async def run(self) -> None: ...


class Shared:
    """An informer that several controllers use, run like a controller for the duration of one leader term."""

    def __init__(self, name: str, informer: Informer) -> None:
        self.name = name
        self._informer = informer

    async def run(self) -> None:
        await self._informer.run()


def selected(controllers: Sequence[Controller], selection: Sequence[str]) -> list[Controller]:
    """Return the controllers that the value of `--controllers` enables."""
    return [controller for controller in controllers if enabled(controller.name, selection)]
