"""The health checks that every server has, with upstream's names.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/etcd.go, pkg/server/config.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tetrapod.apps.options.etcd import EtcdFlags
from tetrapod.generic.admission.plugins.namespace_lifecycle import NAMESPACES
from tetrapod.generic.lifecycle import Check, Lifecycle
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.timestamps import now

_DEFAULT_TIMEOUT: Final = 2.0
"""The seconds that a flag with the value 0 means."""


def add_storage_checks(
    lifecycle: Lifecycle, flags: EtcdFlags, probe: Check, overrides: Sequence[Check], validate: Check
) -> None:
    """Register the checks of stores and `informer-sync`, and the post-start hook `storage-readiness`.

    The checks of the default store are `etcd` and `etcd-readiness`, those of the others `etcd-override-N` and
    `etcd-override-readiness-N`. The checks of readiness have a timeout of their own: a slow store makes the server
    unready, so that it gets no more requests, but not dead.

    Args:
        lifecycle: the hooks and checks of the server.
        flags: the timeouts.
        probe: sends a request to the default store, and raises its error.
        overrides: the probes of the other stores.
        validate: checks that the server can use the objects in the stores. The server is not ready before that has
            succeeded.
    """

    def with_timeout(probe: Check, seconds: float) -> Check:
        async def check() -> None:
            async with asyncio.timeout(seconds or _DEFAULT_TIMEOUT):
                await probe()

        return check

    stores = [("etcd", "etcd-readiness", probe)]
    stores += [(f"etcd-override-{n}", f"etcd-override-readiness-{n}", other) for n, other in enumerate(overrides)]
    for health, readiness, probe_store in stores:
        lifecycle.add_check(health, with_timeout(probe_store, flags.healthcheck_timeout))
        lifecycle.add_check(readiness, with_timeout(probe_store, flags.readycheck_timeout), ("readyz",))
    lifecycle.add_check("informer-sync", lifecycle.informers_synced, ("readyz",))
    lifecycle.on_start("storage-readiness", validate)


def add_certificate_check(lifecycle: Lifecycle, certificate: str) -> None:
    """Register the check `loopback-serving-certificate`, which fails if the certificate in a file has expired.

    The file is read each time.
    """

    async def check() -> None:
        from cryptography import x509  # not at start-up: it costs 20 ms

        serving = x509.load_pem_x509_certificate(await asyncio.to_thread(Path(certificate).read_bytes))
        if serving.not_valid_after_utc < now():
            raise RuntimeError("serving certificate expired")

    lifecycle.add_check("loopback-serving-certificate", check, ("healthz", "livez"))


def add_admission_checks(lifecycle: Lifecycle, storages: StorageFactory) -> None:
    """Register two post-start hooks with upstream's names, which wait until the namespaces have been listed."""
    namespaces = Lister(storages, NAMESPACES)

    async def load() -> None:
        await namespaces.list()

    lifecycle.on_start("start-apiserver-admission-initializer", load)
    lifecycle.on_start("storage-object-count-tracker-hook", load)
