"""The interface of controllers, and their selection by `--controllers`.

Only the replica that leads runs them.
"""

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
    """A `Controller` that only runs an informer, which several controllers use.

    The informer thus starts and stops together with them, when this replica gains or loses leadership.
    """

    def __init__(self, name: str, informer: Informer) -> None:
        self.name = name
        self._informer = informer

    async def run(self) -> None:
        await self._informer.run()


def selected(controllers: Sequence[Controller], selection: Sequence[str]) -> list[Controller]:
    """Return those of the controllers that the value of `--controllers` enables, in the given order.

    Args:
        selection: names, "*" for all that are on by default, and `-name` to disable one.
    """
    return [controller for controller in controllers if enabled(controller.name, selection)]
