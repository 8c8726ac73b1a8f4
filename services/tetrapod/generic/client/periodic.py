"""Periodic work (upstream: k8s.io/apimachinery/pkg/util/wait, JitterUntil without jitter)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)


async def every(
    seconds: float,
    name: str,
    work: Callable[[], Awaitable[None]],
    *,
    level: int = logging.WARNING,
    at_once: bool = True,
) -> None:
    """Await `work`, then sleep for `seconds`, and repeat until cancelled.

    API errors (StatusError, Unavailable, OSError) of `work` are logged at `level`; others are raised.

    Args:
        seconds: the pause between two calls.
        name: the beginning of the log lines.
        work: the work.
        level: the level of the log lines.
        at_once: whether the first call is immediate; otherwise it comes after `seconds`.
    """
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except (StatusError, Unavailable, OSError) as error:
            log.log(level, "%s: %s", name, error)
        await asyncio.sleep(seconds)
