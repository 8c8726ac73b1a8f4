"""`EncodedBackend`: a backend wrapper that stores values in another encoding than JSON. Its callers see JSON.

A value in another encoding is stale, so that the next write of the object stores it in this one, even if it changes
nothing.
Upstream: apiextensions-apiserver/pkg/cmd/server/options/options.go, NewCRDRESTOptionsGetter (CBOR of custom resources);
staging/src/k8s.io/apiserver/pkg/server/storage/storage_codec.go, NewStorageCodec (--storage-media-type)
"""

from __future__ import annotations

from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.storage.backend import Backend, KeyValue, StaleKeyValue
from tetrapod.generic.storage.encoding import as_json
from tetrapod.generic.storage.media_types import StorageEncoding
from tetrapod.generic.storage.transforming import TransformingBackend


class EncodedBackend(TransformingBackend):
    """A `Backend` that stores the objects of one resource in an encoding in another one, and returns them as JSON.

    A stored value in another encoding is returned unchanged, as a `StaleKeyValue`. A value that cannot be decoded is
    returned unchanged, as an ordinary `KeyValue`.

    Args:
        inner: the store; `close` leaves it open.
        encoding: the encoding of values that are written.
    """

    def __init__(self, inner: Backend, encoding: StorageEncoding) -> None:
        super().__init__(inner)
        self._encoding = encoding

    async def _from_store(self, kv: KeyValue) -> KeyValue:
        if not self._encoding.recognizes(kv.value):
            return StaleKeyValue(*kv)
        try:
            value = await offloaded(len(kv.value) >= LARGE, as_json, kv.value)
        except (ValueError, AttributeError, TypeError):
            return kv  # the cache reports it as an object that cannot be decoded
        return kv._replace(value=value)

    async def _to_store(self, key: str, value: bytes) -> bytes:
        return await offloaded(len(value) >= LARGE, self._encoding.encode, value)
