"""What controllers need to know of an election: that their work is run while it may be.

One process over SQLite has nobody to compete with: `ALONE` runs the work, and there is no lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, Protocol

from tetrapod.generic.lifecycle import Lifecycle

log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class Leadership(Protocol):
    async def run(self, work: Work) -> None:
        """Run the work whenever this replica leads, from its beginning each time; it is cancelled when that ends. Never returns."""
        ...


class Runs(Protocol):
    """A controller: `run` works until it is cancelled, and recovers by itself."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


class _Alone:
    async def run(self, work: Work) -> None:
        await work()


ALONE: Final[Leadership] = _Alone()


def lead(name: str, leadership: Leadership, make: Callable[[], Iterable[Runs]], lifecycle: Lifecycle) -> None:
    """Run the controllers in the background while this replica leads. `make` is called for each term: what they know is of that term.

    A server that begins to stop ends them first, and gives the lease back, while it still serves.
    """

    async def work() -> None:
        tasks = [asyncio.create_task(_logged(controller), name=f"controller/{controller.name}") for controller in make()]
        try:
            await asyncio.gather(*tasks)
            await asyncio.Event().wait()  # there is nothing to do; but this replica leads
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    task = lifecycle.background(f"controllers of {name}", leadership.run(work))

    async def end() -> None:
        task.cancel()
        await asyncio.wait({task})

    lifecycle.on_leaving(f"controllers of {name}", end)


async def _logged(controller: Runs) -> None:
    """The end of one by an error harms no other."""
    try:
        await controller.run()
    except Exception as error:
        log.exception("controller %s ended: %s", controller.name, error)
