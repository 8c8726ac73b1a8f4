"""`EncryptedBackend`: a backend wrapper that encrypts the values of one resource. Its callers see plain values.

A value that cannot be decrypted raises NotTransformable, or is an `UnreadableKeyValue` in a range; it is never skipped.
"""

from __future__ import annotations

from collections.abc import Callable

from tetrapod.generic.storage.backend import Backend, KeyValue, StaleKeyValue
from tetrapod.generic.storage.encryption.transformer import Transformer, TransformError
from tetrapod.generic.storage.transforming import TransformingBackend
from tetrapod.generic.storage.unreadable import CannotEncrypt, NotTransformable


class EncryptedBackend(TransformingBackend):
    """A wrapper of the store that encrypts the values of one resource; implements `Backend`.

    Args:
        inner: the store; `close` leaves it open.
        transformer: returns the resource's current transformer. It is called for each value, because the configuration
            may be reloaded.
    """

    def __init__(self, inner: Backend, transformer: Callable[[], Transformer]) -> None:
        super().__init__(inner)
        self._transformer = transformer

    async def _from_store(self, kv: KeyValue) -> KeyValue:
        try:
            plain, stale = await self._transformer().from_storage(kv.value, kv.key.encode())
        except TransformError as error:
            raise NotTransformable(str(error), kv.key) from error
        result_type = StaleKeyValue if stale else KeyValue
        return result_type(kv.key, plain, kv.mod_revision, kv.create_revision, kv.lease)

    async def _to_store(self, key: str, value: bytes) -> bytes:
        try:
            return await self._transformer().to_storage(value, key.encode())
        except TransformError as error:
            raise CannotEncrypt(str(error)) from error
