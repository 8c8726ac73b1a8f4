"""`Encryption`: the runtime of --encryption-provider-config: transformers, health check, and reloading of the file.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go, LoadEncryptionConfig and
DynamicTransformers; controller/controller.go
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from tetrapod.generic.configuration.watching import watch
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.encryption.backend import EncryptedBackend
from tetrapod.generic.storage.encryption.configuration import content, read_configuration
from tetrapod.generic.storage.encryption.kms.probe import KmsProbe
from tetrapod.generic.storage.encryption.kms_v1.probe import KmsV1Probe
from tetrapod.generic.storage.encryption.metrics import RELOADS
from tetrapod.generic.storage.encryption.providers import Providers
from tetrapod.generic.storage.encryption.transformer import Identity, Transformer, TransformError
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.gvk import GroupResource

log = logging.getLogger(__name__)

HEALTH_CHECK: Final = "kms-providers"
_PLUGIN_CHECK: Final = "kms-provider"
_HEALTH_ENDPOINTS: Final = ("healthz", "readyz")
_RELOAD_HOOK: Final = "start-encryption-provider-config-automatic-reload"
_MIN_TIMEOUT: Final = 10.0
_POLL_SECONDS: Final = 0.1


class Encryption:
    """The encryption at rest of one server: the providers of the configuration, their health check, and reloading."""

    def __init__(self, path: str, *, reload: bool) -> None:
        """Read the configuration. `start` must be called before the first read or write of the store.

        Args:
            path: the configuration file.
            reload: apply later changes of the file (--encryption-provider-config-automatic-reload).

        Raises:
            ValueError: the file cannot be used; with upstream's text.
        """
        self._path = path
        self._reloads = reload
        config, self._hash = read_configuration(path, reload=reload)
        self._providers = Providers(config)
        self._polls: list[asyncio.Task[None]] = []
        self._reloaded: dict[GroupResource, int] = {}
        RELOADS.applied_hash(self._hash)

    def backend(self, inner: Backend, resource: GroupResource) -> Backend:
        """Return a wrapper of `inner` that encrypts the values of one resource. Closing it leaves `inner` open."""
        self._reloaded[resource] = 0
        return EncryptedBackend(inner, lambda: self.transformer(resource))

    def reloads(self, resource: GroupResource) -> int:
        """Return how often the transformer of a resource was replaced, since its `backend` was created."""
        return self._reloaded.get(resource, 0)

    def transformer(self, resource: GroupResource) -> Transformer:
        """Return the current transformer of a resource.

        The caller must not keep it, because the configuration may be reloaded.
        """
        return self._providers.transformer(resource)

    def register(self, lifecycle: Lifecycle) -> None:
        """Add the health check of KMS plugins to a server, and reload the file when it changes.

        One health check covers all plugins. It is added if there are KMS plugins, or if reloading may add some. As
        upstream, each plugin has its own health check instead if one of them is of KMS v1 and reloading is disabled.
        The file is watched, from the start of the server on, if reloading is enabled.
        """
        probes = self._providers.probes
        if not self._reloads and len(self._providers.polled_probes()) < len(probes):
            for number, probe in enumerate(probes):
                lifecycle.add_check(f"{_PLUGIN_CHECK}-{number}", _check_of(probe), _HEALTH_ENDPOINTS)
        elif self._reloads or probes:
            lifecycle.add_check(HEALTH_CHECK, self.check, _HEALTH_ENDPOINTS)
        if self._reloads:

            async def follow() -> None:
                lifecycle.background("encryption configuration", watch(self._path, self.reload))

            lifecycle.on_start(_RELOAD_HOOK, follow)

    async def start(self) -> None:
        """Check each KMS v2 plugin once, and start to poll them.

        It must be called before the first read, so that reachable plugins have reported their key IDs by then.
        """
        await asyncio.gather(*(probe.prime() for probe in self._providers.polled_probes()))
        self._polls = _polling(self._providers)

    async def check(self) -> None:
        """Do nothing if all KMS plugins are healthy; else raise RuntimeError with upstream's text."""
        await _check(self._providers)

    async def reload(self) -> bool:
        """Apply the file's content if it has changed, is valid, and its plugins become healthy in time.

        Otherwise keep the current configuration and log the error. The call returns when the connections to the former
        plugins have been closed.

        Returns:
            Whether the file's content is in use now.
        """
        try:
            _, current = await asyncio.to_thread(content, self._path)
            if current == self._hash:
                return True
            config, digest = await asyncio.to_thread(read_configuration, self._path, reload=True)
            fresh = Providers(config)
            try:
                await _until_healthy(fresh)
            except BaseException:
                await fresh.close()
                raise
        except (ValueError, RuntimeError) as error:
            RELOADS.failed()
            log.error("error processing encryption config file %s: %s", self._path, error)
            return False
        old_providers, polls = self._providers, self._polls
        for resource in self._reloaded:
            if not all(isinstance(of.transformer(resource), Identity) for of in (old_providers, fresh)):
                self._reloaded[resource] += 1
        self._providers, self._hash, self._polls = fresh, digest, _polling(fresh)
        RELOADS.succeeded_hash(digest)
        log.info("loaded new kms encryption config content")
        for poll in polls:
            poll.cancel()
        await asyncio.sleep(2 * old_providers.timeouts)  # wait for calls in flight
        await old_providers.close()
        return True

    async def close(self) -> None:
        """Stop polling, and close the connections to the plugins."""
        for poll in self._polls:
            poll.cancel()
        await asyncio.gather(*self._polls, return_exceptions=True)
        await self._providers.close()


def _polling(providers: Providers) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(probe.poll(), name=f"kms plugin {probe.name}") for probe in providers.polled_probes()]


def _check_of(probe: KmsProbe | KmsV1Probe) -> Callable[[], Awaitable[None]]:
    """Return the health check of one plugin, which raises RuntimeError if the plugin is unhealthy."""

    async def check() -> None:
        try:
            await probe.check()
        except TransformError as error:
            raise RuntimeError(str(error)) from error

    return check


async def _check(providers: Providers) -> None:
    errors = []
    for number, probe in enumerate(providers.probes):
        try:
            await probe.check()
        except TransformError as error:
            errors.append(f"{_PLUGIN_CHECK}-{number}: {error}")
    if errors:
        raise RuntimeError(aggregate_errors(errors))


async def _until_healthy(providers: Providers) -> None:
    """Wait until all plugins are healthy.

    Raises:
        RuntimeError: one is still unhealthy after twice the sum of the plugins' timeouts, or after 10 seconds if that
            is longer.
    """
    try:
        async with asyncio.timeout(max(2 * providers.timeouts, _MIN_TIMEOUT)):
            while True:
                try:
                    return await _check(providers)
                except RuntimeError as error:
                    failure = str(error)
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        text = "health check for new transformers failed, polling error context deadline exceeded"
        raise RuntimeError(f"{text}: {failure}") from None
