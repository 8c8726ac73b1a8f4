"""The etcd backend: a small client of our own over gRPC and generated messages."""

from tetrapod.generic.storage.etcd.backend import EtcdBackend

__all__ = ["EtcdBackend"]
