"""The health checks that every server has, by upstream's names (k8s.io/apiserver/pkg/server/options/etcd.go, server/config.go)."""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.lifecycle import Check, Lifecycle

READY_PATIENCE: Final = 2.0
"""Upstream's --etcd-readycheck-timeout: a store that is this slow should get no more requests, though it is alive."""


def add_storage_checks(lifecycle: Lifecycle, probe: Check) -> None:
    """`etcd` asks the store; `etcd-readiness` with less patience; `informer-sync` whether local copies are there.

    The hook `storage-readiness` keeps a server from being ready before the store has answered once.
    """

    async def soon() -> None:
        async with asyncio.timeout(READY_PATIENCE):
            await probe()

    lifecycle.add_check("etcd", probe)
    lifecycle.add_check("etcd-readiness", soon, ("readyz",))
    lifecycle.add_check("informer-sync", lifecycle.informers_synced, ("readyz",))
    lifecycle.on_start("storage-readiness", probe)
