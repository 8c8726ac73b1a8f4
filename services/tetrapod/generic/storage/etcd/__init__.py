"""The etcd backend: a small etcd client over gRPC with generated messages."""

from tetrapod.generic.storage.etcd.backend import EtcdBackend

__all__ = ["EtcdBackend"]
