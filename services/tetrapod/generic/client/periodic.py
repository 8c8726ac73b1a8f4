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
    """Call `work` every `seconds` until cancelled, the first time immediately if `at_once`.

    API errors are logged at `level`.
    """
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except (StatusError, Unavailable, OSError) as error:
            log.log(level, "%s: %s", name, error)
        await asyncio.sleep(seconds)
