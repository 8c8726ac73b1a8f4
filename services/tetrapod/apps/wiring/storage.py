"""Which store: etcd where servers are named, else SQLite under the data directory; and whether it is one that we can work on."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.tls import check_pair
from tetrapod.generic.configuration.files import complaint
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.lifecycle.unavailable import Unavailable
from tetrapod.generic.storage.backend import Backend, CannotOpen
from tetrapod.generic.storage.keys import prefix_end

if TYPE_CHECKING:
    from tetrapod.generic.storage.etcd.backend import EtcdBackend

_PROTOBUF: Final = b"k8s\x00"
_PATIENCE: Final = 3.0


@runtime_checkable
class _Checked(Protocol):
    """A backend of several members."""

    async def check(self) -> None: ...


def open_backend(options: Options) -> Backend:
    """Open the store that the flags select.

    Raises:
        CannotOpen: the file is not a database of this program.
        ValueError: the value of a flag is invalid.
    """
    if options.etcd.servers:
        return _etcd(options)
    from tetrapod.generic.storage.sqlite.backend import HISTORY_SECONDS, SqliteBackend

    return SqliteBackend(options.database, history_seconds=options.etcd.compaction_interval or HISTORY_SECONDS)


def _etcd(options: Options) -> EtcdBackend:
    from tetrapod.generic.storage.etcd.backend import EtcdBackend

    if options.etcd.cafile:
        try:
            ssl.create_default_context(cafile=options.etcd.cafile)
        except ssl.SSLError:
            raise ValueError(f"--etcd-cafile: {options.etcd.cafile}: no certificates in PEM") from None
        except OSError as error:
            raise ValueError(f"--etcd-cafile: {complaint('open', options.etcd.cafile, error)}") from None
    if bool(options.etcd.certfile) != bool(options.etcd.keyfile):
        raise ValueError("--etcd-certfile and --etcd-keyfile go together")
    if options.etcd.certfile:
        check_pair(CertificatePair(options.etcd.certfile, options.etcd.keyfile), "etcd-certfile", "etcd-keyfile")
    files = (options.etcd.cafile or None, options.etcd.certfile or None, options.etcd.keyfile or None)
    return EtcdBackend(options.etcd.servers, *files, compaction_seconds=options.etcd.compaction_interval)


async def check_early(backend: Backend, root: str) -> None:
    """`check_backend`, if the store answers now; who starts before its store has the check again when that is there."""
    with contextlib.suppress(Unavailable, TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await check_backend(backend, root)


async def check_backend(backend: Backend, root: str) -> None:
    """Once it answers, before anything is written.

    Raises:
        CannotOpen: several clusters, or objects that a stock kube-apiserver stored in a form that is not read here.
    """
    if isinstance(backend, _Checked):
        await backend.check()
    prefix = f"{root.rstrip('/')}/namespaces/"
    page = await backend.range(prefix, prefix_end(prefix), limit=1)
    if page.kvs and page.kvs[0].value.startswith(_PROTOBUF):
        raise CannotOpen(
            f"the store holds the objects of a stock kube-apiserver as protobuf ({page.kvs[0].key}): let it write all of them anew with "
            "--storage-media-type=application/json first, or use another --etcd-prefix"
        )
