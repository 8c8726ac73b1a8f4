"""The store: etcd if --etcd-servers is given, otherwise SQLite in the data directory.

This module also configures encryption at rest, and checks that the objects in the store can be used. Modules of
encryption are imported only if --encryption-provider-config names a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from tetrapod.apps.options.etcd import EtcdFlags
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.storage_overrides import StorageOverrides, parse_overrides
from tetrapod.apps.wiring.tls import check_pair
from tetrapod.generic.configuration.files import file_error_text
from tetrapod.generic.egress.selector import ETCD, NO_EGRESS, EgressSelector
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.lifecycle import Lifecycle, Unavailable
from tetrapod.generic.storage.backend import Backend, CannotOpen
from tetrapod.generic.storage.media_types import JSON, PROTOBUF, YAML
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource

if TYPE_CHECKING:
    from tetrapod.generic.storage.etcd.backend import EtcdBackend

_EARLY_TIMEOUT: Final = 3.0
_UNCACHED: Final = (GroupResource("", "events"), GroupResource("events.k8s.io", "events"))
"""The resources whose reads no watch cache answers unless --watch-cache-sizes gives it a size."""
_STORAGE_MEDIA_TYPES: Final = (JSON, PROTOBUF, YAML)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


if TYPE_CHECKING:
    from tetrapod.generic.storage.encryption.encryption import Encryption


@runtime_checkable
class _Checked(Protocol):
    """A backend that can check that its members belong to one cluster."""

    async def check(self) -> None: ...


def open_backend(options: Options, egress: EgressSelector = NO_EGRESS) -> Backend:
    """Return a new backend for the store that the flags name, which the caller closes. An etcd is not contacted yet.

    Raises:
        CannotOpen: the file is not a database of Tetrapod.
        ValueError: a flag or a file is invalid.
    """
    if options.etcd.servers:
        return _etcd(options.etcd, options.etcd.servers, egress)
    from tetrapod.generic.storage.sqlite.backend import HISTORY_SECONDS, SqliteBackend

    return SqliteBackend(options.database, history_seconds=options.etcd.compaction_interval or HISTORY_SECONDS)


def open_overrides(flags: EtcdFlags, egress: EgressSelector = NO_EGRESS) -> StorageOverrides:
    """Return the stores of --etcd-servers-overrides, which the caller closes. They are not contacted yet.

    Raises:
        ValueError: a flag or a file is invalid.
    """
    return StorageOverrides(parse_overrides(flags.servers_overrides), lambda servers: _etcd(flags, servers, egress))


def _etcd(flags: EtcdFlags, servers: Sequence[str], egress: EgressSelector) -> EtcdBackend:
    from tetrapod.generic.storage.etcd.backend import EtcdBackend

    if flags.cafile:
        try:
            ssl.create_default_context(cafile=flags.cafile)
        except ssl.SSLError:
            raise ValueError(f"--etcd-cafile: {flags.cafile}: no certificates in PEM") from None
        except OSError as error:
            raise ValueError(f"--etcd-cafile: {file_error_text('open', flags.cafile, error)}") from None
    if bool(flags.certfile) != bool(flags.keyfile):
        raise ValueError("--etcd-certfile and --etcd-keyfile go together")
    if flags.certfile:
        check_pair(CertificatePair(flags.certfile, flags.keyfile), "etcd-certfile", "etcd-keyfile")
    files = (flags.cafile or None, flags.certfile or None, flags.keyfile or None)
    return EtcdBackend(servers, *files, compaction_seconds=flags.compaction_interval, dialer=egress.lookup(ETCD))


def cached_resources(flags: EtcdFlags) -> Callable[[GroupResource], bool]:
    """Return a function that returns whether reads of a resource are answered by its watch cache.

    They are, unless --watch-cache is off, or the size of the cache is 0: that of --watch-cache-sizes, or by default
    that of Events.

    Upstream: staging/src/k8s.io/apiserver/pkg/server/options/etcd.go, ParseWatchCacheSizes;
    pkg/kubeapiserver/default_storage_factory_builder.go, DefaultWatchCacheSizes

    Raises:
        ValueError: a size is invalid; the text is upstream's.
    """
    uncached = dict.fromkeys(_UNCACHED, True)
    for setting in flags.watch_cache_sizes:
        resource, *sizes = setting.split("#")
        if len(sizes) != 1:
            raise ValueError(f"invalid value of watch cache size: {setting}")
        if not _INTEGER.fullmatch(sizes[0]):
            raise ValueError(f"invalid size of watch cache size: {setting}")
        if int(sizes[0]) < 0:
            raise ValueError(f"watch cache size cannot be negative: {setting}")
        name, _, group = resource.partition(".")
        uncached[GroupResource(group, name)] = int(sizes[0]) == 0
    return lambda resource: flags.watch_cache and not uncached.get(resource, False)


def storage_media_type(flags: EtcdFlags) -> str:
    """Return the media type in which built-in resources are stored. As upstream, "" is JSON.

    Raises:
        ValueError: the flag is invalid; the text is upstream's.
    """
    media_type = flags.storage_media_type or JSON
    if media_type not in _STORAGE_MEDIA_TYPES:
        allowed = ", ".join(_STORAGE_MEDIA_TYPES)
        raise ValueError(f"--storage-media-type {go_quote(media_type)} invalid, allowed values: {allowed}")
    return media_type


async def check_early(backend: Backend, overrides: StorageOverrides) -> None:
    """Call `check_stores`, but return normally if a store does not respond within 3 seconds.

    A post-start hook then checks the stores when they respond.
    """
    with contextlib.suppress(Unavailable, TimeoutError):
        async with asyncio.timeout(_EARLY_TIMEOUT):
            await check_stores(backend, overrides)


async def check_stores(backend: Backend, overrides: StorageOverrides) -> None:
    """Check, before anything is written, that each etcd store of this server has the members of one cluster only.

    Members that do not respond are ignored.

    Args:
        backend: the default store.
        overrides: the stores of single resources.

    Raises:
        CannotOpen: the etcd members belong to several clusters.
    """
    await _check_store(backend, "--etcd-servers")
    for store in overrides.stores:
        await _check_store(store, "--etcd-servers-overrides")


async def _check_store(backend: Backend, flag: str) -> None:
    """Check that the members of a store belong to one etcd cluster; a store without members passes.

    Raises:
        CannotOpen: they belong to several clusters. The text begins with `flag`, which names the store.
    """
    if isinstance(backend, _Checked):
        try:
            await backend.check()
        except CannotOpen as error:
            raise CannotOpen(f"{flag}: {error}") from None


def build_encryption(flags: EtcdFlags, lifecycle: Lifecycle) -> Encryption | None:
    """Return the encryption of stored objects, with its hooks registered, or None if none is configured.

    Raises:
        ValueError: the file is invalid; the text is upstream's.
    """
    if not flags.encryption_provider_config:
        if flags.encryption_provider_config_automatic_reload:
            raise ValueError(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
            )
        return None
    from tetrapod.generic.storage.encryption.encryption import Encryption

    encryption = Encryption(flags.encryption_provider_config, reload=flags.encryption_provider_config_automatic_reload)
    encryption.register(lifecycle)
    return encryption
