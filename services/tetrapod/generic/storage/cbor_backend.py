"""`CborBackend`: a backend wrapper that stores the values of one resource as CBOR. Its callers see JSON.

A value that is still JSON is stale, so that the next write of the object stores it as CBOR, even if it changes nothing.
Upstream: apiextensions-apiserver/pkg/cmd/server/options/options.go, NewCRDRESTOptionsGetter
"""

from __future__ import annotations

from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.storage.backend import KeyValue, StaleKeyValue
from tetrapod.generic.storage.encoding import as_json
from tetrapod.generic.storage.transforming import TransformingBackend
from tetrapod.machinery import cbor
from tetrapod.machinery.json_pieces import loads


class CborBackend(TransformingBackend):
    """A `Backend` that stores the objects of one resource as CBOR in another one, and returns them as JSON.

    A stored value that is not CBOR is returned unchanged, as a `StaleKeyValue`. CBOR that cannot be decoded is returned
    unchanged, as an ordinary `KeyValue`.
    """

    async def _from_store(self, kv: KeyValue) -> KeyValue:
        if not kv.value.startswith(cbor.MAGIC):
            return StaleKeyValue(*kv)
        try:
            value = await offloaded(len(kv.value) >= LARGE, as_json, kv.value)
        except (ValueError, AttributeError, TypeError):
            return kv  # the cache reports it as an object that cannot be decoded
        return kv._replace(value=value)

    async def _to_store(self, key: str, value: bytes) -> bytes:
        return await offloaded(len(value) >= LARGE, _as_cbor, value)


def _as_cbor(value: bytes) -> bytes:
    return cbor.encode(loads(value))
