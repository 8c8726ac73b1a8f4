"""`Leadership`: runs the work of controllers while this replica leads.

A single process over SQLite has no other replicas: `ALONE` runs the work without a lease.
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
    """Whether and when this replica leads."""

    async def run(self, work: Work) -> None:
        """Run the work whenever this replica leads, from the start each time; it is cancelled when leadership ends.

        Never returns.
        """
        ...


class Runs(Protocol):
    """A controller. `run` works until it is cancelled, and handles its own errors."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


class _Alone:
    async def run(self, work: Work) -> None:
        await work()


ALONE: Final[Leadership] = _Alone()


def lead(name: str, leadership: Leadership, make: Callable[[], Iterable[Runs]], lifecycle: Lifecycle) -> None:
    """Run controllers in the background while this replica leads.

    When the server begins to stop, they end first and the lease is released, while the server still serves.

    Args:
        name: the name of the background task.
        leadership: decides when this replica leads.
        make: creates the controllers. It is called for each term, so that they keep no state from an earlier one.
        lifecycle: runs the task.
    """

    async def work() -> None:
        tasks = [
            asyncio.create_task(_logged(controller), name=f"controller/{controller.name}") for controller in make()
        ]
        try:
            await asyncio.gather(*tasks)
            await asyncio.Event().wait()  # without controllers, or after all have ended, this replica still leads
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
    """Run a controller and log its failure, so that the others continue."""
    try:
        await controller.run()
    except Exception as error:
        log.exception("controller %s ended: %s", controller.name, error)
