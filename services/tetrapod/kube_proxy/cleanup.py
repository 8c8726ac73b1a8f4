"""Removes all rules of the proxy (--cleanup).

Upstream: pkg/proxy/iptables/cleanup.go
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress

from tetrapod.kube_proxy.chains import CANARY, FILTER_CHAINS, JUMPS, NAT_CHAINS, belongs_to_port
from tetrapod.kube_proxy.iptables import IPTables, IPTablesError, usable
from tetrapod.kube_proxy.tables import Table, chains_in

log = logging.getLogger(__name__)


async def clean_up() -> None:
    """Remove the rules of all families.

    Raises:
        ValueError: some could not be removed. The log says which. The text is upstream's.
    """
    succeeded = [await _clean_up(iptables) for iptables in (await usable()).values()]
    if not all(succeeded):
        raise ValueError("encountered an error while tearing down rules")


async def _clean_up(iptables: IPTables) -> bool:
    """Remove the rules of a family, and return whether that succeeded."""
    succeeded = True
    for jump in JUMPS:
        try:
            await iptables.delete_rule(jump.table, jump.source, jump.arguments())
        except (IPTablesError, OSError) as error:
            if not (isinstance(error, IPTablesError) and error.is_not_found):
                log.error("Error removing pure-iptables proxy rule: %s", error)
                succeeded = False
    for table, own in (("nat", NAT_CHAINS), ("filter", FILTER_CHAINS)):
        try:
            existing = chains_in(await iptables.save(table))
            ours = {chain for chain in existing if chain in (*own, CANARY) or belongs_to_port(chain)}
            await iptables.restore(_deletion(table, ours).text(), table)
        except (IPTablesError, OSError) as error:
            log.error("Failed to remove the chains of the table %s: %s", table, error)
            succeeded = False
    with suppress(IPTablesError, OSError):
        await iptables.delete_chain("mangle", CANARY)
    return succeeded


def _deletion(table: str, chains: Iterable[str]) -> Table:
    """Return a table that empties and deletes chains."""
    names = sorted(chains)
    return Table(table, names, [f"-X {name}" for name in names])
