"""Cached storage of resources: the layer between the registry and the backend."""

from tetrapod.generic.storage.cacher.cacher import Cacher
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory

__all__ = ["Cacher", "CachingStorageFactory"]
