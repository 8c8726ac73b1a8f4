"""`PeerLeases`: a key in the store for every running aggregator, which expires unless it is renewed.

The keys and objects are those of upstream, so that kube-apiservers and aggregators over one etcd see each other.
Upstream: pkg/controlplane/reconcilers/lease.go, storageLeases
"""

from __future__ import annotations

from typing import Final

import orjson

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.media_types import JSON, encoded

TTL: Final = 15
"""Seconds until a key expires (upstream: DefaultEndpointReconcilerTTL)."""
_TRIES: Final = 5


class PeerLeases:
    """The registration of running aggregators in the store: a key for each, named by its IP address, which expires.

    It registers an aggregator, removes it, and lists the addresses of all.
    """

    def __init__(self, backend: Backend, prefix: str, media_type: str = JSON) -> None:
        """Create the accessor without reading the store.

        Args:
            backend: the store of the keys.
            prefix: the common prefix of all keys (--etcd-prefix).
            media_type: the media type in which the objects are stored (--storage-media-type).
        """
        self._backend = backend
        self._media_type = media_type
        self._prefix = f"{prefix}/masterleases/"

    async def addresses(self) -> list[str]:
        """Return the sorted IP addresses of the running aggregators, by their keys.

        Raises:
            Unavailable: the store does not respond.
        """
        result = await self._backend.range(self._prefix, f"{self._prefix[:-1]}0", keys_only=True)
        return sorted(kv.key.removeprefix(self._prefix) for kv in result.kvs)

    async def renew(self, address: str) -> None:
        """Create the key of an IP address, or renew it, so that it expires in 15 seconds.

        Raises:
            Unavailable: the store does not respond, or other writers changed the key at each of five attempts.
        """
        subsets = [{"addresses": [{"ip": address}]}]
        value = orjson.dumps(
            {"kind": "Endpoints", "apiVersion": "v1", "metadata": {"creationTimestamp": None}, "subsets": subsets}
        )
        value = encoded(self._media_type, value)
        key = self._prefix + address
        lease = await self._backend.grant_lease(TTL)
        current = await self._backend.get(key)
        for _ in range(_TRIES):
            result = await self._backend.put_if(
                key, value, current.mod_revision if current is not None else 0, lease=lease
            )
            if result.succeeded:
                return
            current = result.current
        raise Unavailable(f"the lease of {address} changes all the time")

    async def remove(self, address: str) -> bool:
        """Delete the key of an IP address, and return whether it existed and was deleted.

        Raises:
            Unavailable: the store does not respond.
        """
        current = await self._backend.get(self._prefix + address)
        return current is not None and (await self._backend.delete_if(current.key, current.mod_revision)).succeeded
