"""Renewal of the leaf certificates of `tetrapod up` while it runs.

CAs are not renewed, because clients would not know the new ones. The listener and the aggregator read changed files
themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)

INTERVAL: Final = 12 * 3600.0


async def renew_periodically(
    renew: Callable[[], bool], on_renewal: Callable[[], None], *, interval: float = INTERVAL
) -> None:
    """Renew certificates until cancelled.

    Args:
        renew: renews certificates that expire soon. It is called in a thread, and returns whether it renewed any.
        on_renewal: called after a renewal.
        interval: seconds between calls.
    """
    while True:
        await asyncio.sleep(interval)
        try:
            if await asyncio.to_thread(renew):
                on_renewal()
                log.info("certificates renewed")
        except (OSError, ValueError) as error:
            log.error("certificates not renewed: %s", error)
