"""Which controllers run: those that `--controllers` selects, in the replica that leads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.controllers import enabled


class Controller(Protocol):
    """`name` is upstream's. `run` works until it is cancelled."""

    name: str

    async def run(self) -> None: ...


class Shared:
    """An informer that several controllers of one term look at."""

    def __init__(self, name: str, informer: Informer) -> None:
        self.name = name
        self._informer = informer

    async def run(self) -> None:
        await self._informer.run()


def selected(controllers: Sequence[Controller], selection: Sequence[str]) -> list[Controller]:
    return [controller for controller in controllers if enabled(controller.name, selection)]
