"""Storage: the backends (etcd, SQLite), the watch cache and encryption at rest."""
