"""Which store: etcd where servers are named, else SQLite under the data directory."""

from __future__ import annotations

from tetrapod.cli.options import Options
from tetrapod.generic.storage.backend import Backend


def open_backend(options: Options) -> Backend:
    if options.etcd_servers:
        from tetrapod.generic.storage.etcd.backend import EtcdBackend

        files = (options.etcd_cafile or None, options.etcd_certfile or None, options.etcd_keyfile or None)
        return EtcdBackend(options.etcd_servers, *files)
    from tetrapod.generic.storage.sqlite.backend import SqliteBackend

    return SqliteBackend(options.data_dir / "tetrapod.db")
