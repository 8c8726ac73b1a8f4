"""The certificates of `tetrapod up` renewed while it runs: a server that is never restarted does not find itself without one.

Authorities stay: a new one would be unknown to everybody out there. Whoever reads the files (the listener, the aggregator) takes renewed
ones up by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)

INTERVAL: Final = 12 * 3600.0


async def renewing(renew: Callable[[], bool], renewed: Callable[[], None], *, interval: float = INTERVAL) -> None:
    """`renew` every `interval` seconds, in a thread; `renewed` is called where it made anything. Until cancelled."""
    while True:
        await asyncio.sleep(interval)
        try:
            if await asyncio.to_thread(renew):
                renewed()
                log.info("certificates renewed")
        except (OSError, ValueError) as error:
            log.error("certificates not renewed: %s", error)
