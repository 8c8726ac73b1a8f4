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
    """Decides when this replica leads, so that only one replica does the work of controllers."""

    async def run(self, work: Work) -> None:
        """Call `work` each time this replica becomes the leader, and cancel it when it stops being the leader.

        Never returns; cancel it to give up leadership.
        """
        ...


class Runs(Protocol):
    """A controller, as `lead` runs it.

    `run` works until it is cancelled. If it ends with an error, the error is logged and it is not restarted.
    """

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


class _Alone:
    async def run(self, work: Work) -> None:
        await work()


ALONE: Final[Leadership] = _Alone()


def lead(name: str, leadership: Leadership, make: Callable[[], Iterable[Runs]], lifecycle: Lifecycle) -> None:
    """Run controllers in a background task while this replica leads.

    When the server begins to stop, the controllers are cancelled and the Lease is released, while the server still
    serves.

    Args:
        name: the name of the background task.
        leadership: decides when this replica leads.
        make: creates the controllers. It is called each time this replica becomes the leader, so that they keep no
            earlier state.
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
    """Run a controller. Log an exception instead of raising it, so that the other controllers continue."""
    try:
        await controller.run()
    except Exception as error:
        log.exception("controller %s ended: %s", controller.name, error)
