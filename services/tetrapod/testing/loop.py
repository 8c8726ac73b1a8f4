"""An event loop in its own thread, for callers without a loop or with another one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tetrapod.generic.scheduling.event_loop import new_event_loop

T = TypeVar("T")


class LoopThread:
    """A thread that runs an event loop, to which other threads pass coroutines."""

    def __init__(self, name: str) -> None:
        """Start the thread, which gets this name."""
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, coroutine: Coroutine[Any, Any, T], timeout: float = 60.0) -> T:
        """Run a coroutine in the loop, wait for it and return its result. The caller must be another thread.

        Args:
            coroutine: the coroutine.
            timeout: seconds to wait. The coroutine continues to run after a timeout.

        Raises:
            TimeoutError: it took longer than `timeout`.
            Exception: any exception of the coroutine.
        """
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout)

    def close(self) -> None:
        """Cancel all tasks, and stop the loop and its thread."""
        if self._loop.is_closed():
            return
        self.call(_end_tasks())
        self.call(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
