"""The health checks that every server has, by upstream's names (k8s.io/apiserver/pkg/server/options/etcd.go, server/config.go)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tetrapod.apps.options.options import Options
from tetrapod.generic.admission.plugins.namespace_lifecycle import NAMESPACES
from tetrapod.generic.lifecycle.lifecycle import Check, Lifecycle
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.timestamps import now


def add_storage_checks(lifecycle: Lifecycle, options: Options, probe: Check, right: Check) -> None:
    """Add the health checks of the storage.

    - `etcd` probes the store.
    - `etcd-readiness` probes it with another timeout: a replica with a slow store is alive, but should get no more requests.
    - `informer-sync` checks that informers have synced.
    - The hook `storage-readiness` delays readiness until `right` has succeeded once.

    Args:
        probe: reads from the store.
        right: checks that the store is usable.
    """

    def within(seconds: float) -> Check:
        async def check() -> None:
            async with asyncio.timeout(seconds):
                await probe()

        return check

    lifecycle.add_check("etcd", within(options.etcd.healthcheck_timeout))
    lifecycle.add_check("etcd-readiness", within(options.etcd.readycheck_timeout), ("readyz",))
    lifecycle.add_check("informer-sync", lifecycle.informers_synced, ("readyz",))
    lifecycle.on_start("storage-readiness", right)


def add_certificate_check(lifecycle: Lifecycle, certificate: str) -> None:
    """`loopback-serving-certificate`: what this server presents, to itself too, has not run out. A renewed file counts."""

    async def valid() -> None:
        from cryptography import x509  # not at start-up: it costs 20 ms

        found = x509.load_pem_x509_certificate(await asyncio.to_thread(Path(certificate).read_bytes))
        if found.not_valid_after_utc < now():
            raise RuntimeError("serving certificate expired")

    lifecycle.add_check("loopback-serving-certificate", valid, ("healthz", "livez"))


def add_admission_checks(lifecycle: Lifecycle, storages: StorageFactory) -> None:
    """Hooks for what admission and the limits of flow control look at with every request: namespaces, and how many objects there are."""
    namespaces = Lister(storages, NAMESPACES)

    async def known() -> None:
        await namespaces.list()

    lifecycle.on_start("start-apiserver-admission-initializer", known)
    lifecycle.on_start("storage-object-count-tracker-hook", known)
