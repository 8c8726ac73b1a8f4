"""Notices when another program removes all rules, such as a firewall that is loaded again.

Empty chains serve as canaries: if one is gone, the rules are gone, too.

Upstream: pkg/util/iptables/iptables.go, Monitor
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tetrapod.kube_proxy.chains import CANARY
from tetrapod.kube_proxy.iptables import IPTables, IPTablesError

log = logging.getLogger(__name__)

_TABLES: Final = ("mangle", "nat", "filter")
_FLUSH_SECONDS: Final = 5.0
"""The seconds that another program may take from the removal of the first canary to that of the last."""
_POLL_SECONDS: Final = 0.1


async def watch_rules(iptables: IPTables, interval: float, reload: Callable[[], None]) -> None:
    """Call `reload` each time that the rules were removed, until cancelled.

    Args:
        iptables: the rules.
        interval: the seconds between two checks.
        reload: called after a removal.
    """
    while True:
        while not await _create(iptables):  # noqa: ASYNC110 - the kernel sends no events
            await asyncio.sleep(interval)
        await asyncio.sleep(interval)
        while await _may_exist(iptables, _TABLES[0]):  # noqa: ASYNC110
            await asyncio.sleep(interval)
        log.info("iptables canary deleted")
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                for table in _TABLES[1:]:
                    while await _may_exist(iptables, table):  # noqa: ASYNC110
                        await asyncio.sleep(_POLL_SECONDS)
        log.info("Reloading after iptables flush")
        reload()


async def _create(iptables: IPTables) -> bool:
    """Create the canaries, and return whether that succeeded."""
    for table in _TABLES:
        try:
            await iptables.ensure_chain(table, CANARY)
        except (IPTablesError, OSError) as error:
            log.error("Could not set up iptables canary in table %s: %s", table, error)
            return False
    return True


async def _may_exist(iptables: IPTables, table: str) -> bool:
    """Return whether the canary of a table exists, or the program could not look for it."""
    try:
        await iptables.list_chain(table, CANARY)
    except IPTablesError as error:
        if error.could_not_try:
            log.error("Could not check for iptables canary in table %s: %s", table, error)
        return error.could_not_try
    return True
