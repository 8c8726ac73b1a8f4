"""The embedded backend: one SQLite file (or memory) that keeps past revisions for a while, as etcd does."""

from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.generic.storage.sqlite.lock import DatabaseInUse
from tetrapod.generic.storage.sqlite.schema import UnsupportedDatabase

__all__ = ["DatabaseInUse", "SqliteBackend", "UnsupportedDatabase"]
