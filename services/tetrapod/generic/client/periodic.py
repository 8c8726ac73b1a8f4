"""Work that is done over and over (upstream: k8s.io/apimachinery/pkg/util/wait, JitterUntil without jitter)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)


async def every(
    seconds: float, name: str, work: Callable[[], Awaitable[None]], *, level: int = logging.WARNING, at_once: bool = True
) -> None:
    """Work now (`at_once`) and so many seconds after each time, until cancelled; what the API refuses is told, and tried again then."""
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except (StatusError, Unavailable, OSError) as error:
            log.log(level, "%s: %s", name, error)
        await asyncio.sleep(seconds)
