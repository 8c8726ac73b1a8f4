"""Decryption and encryption of backup contents by an EncryptionConfiguration.

As in a server, the providers that apply depend on a value's resource, and authenticated ciphers on its full key. The
resource of a value follows from its key.
Upstream: pkg/kubeapiserver/default_storage_factory_builder.go
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache

from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item, first_lines
from tetrapod.generic.storage.config import UNUSUAL_PLACES
from tetrapod.generic.storage.encryption.encryption import Encryption
from tetrapod.generic.storage.encryption.transformer import Transformer, TransformError
from tetrapod.generic.storage.unreadable import ENCRYPTED
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.types import groups, resource_facts

_Change = Callable[[Transformer, Item, bytes], Awaitable[bytes]]


class Sealing:
    """Encrypts and decrypts the contents of one store.

    Args:
        encryption: the providers of the configuration.
        path: the configuration file, for error texts.
        prefix: the prefix of the store's keys.
    """

    def __init__(self, encryption: Encryption, path: str, prefix: str) -> None:
        self._encryption = encryption
        self._path = path
        self._start = prefix.rstrip("/") + "/"

    async def decrypted(self, contents: Contents) -> Contents:
        """Return the contents with encrypted values decrypted; other values are unchanged.

        Raises:
            BackupError: some values cannot be decrypted; the text lists their keys.
        """

        async def open_(transformer: Transformer, item: Item, key: bytes) -> bytes:
            return (
                (await transformer.from_storage(item.value, key)).data
                if item.value.startswith(ENCRYPTED)
                else item.value
            )

        return await self._convert(contents, open_, "decrypted")

    async def encrypted(self, contents: Contents) -> Contents:
        """Return the contents with each value encrypted by the first provider that is configured for its resource.

        The values must not be encrypted already. Resources without a provider keep plain values.

        Raises:
            BackupError: values cannot be encrypted, such as when a KMS plugin fails; the text lists their keys.
        """

        async def close(transformer: Transformer, item: Item, key: bytes) -> bytes:
            return await transformer.to_storage(item.value, key)

        return await self._convert(contents, close, "encrypted")

    async def _convert(self, contents: Contents, change: _Change, done: str) -> Contents:
        items: list[Item] = []
        errors: list[str] = []
        for item in contents.items:
            resource = resource_of(item.key)
            try:
                if resource is not None:
                    value = await change(
                        self._encryption.transformer(resource), item, (self._start + item.key).encode()
                    )
                    item = item._replace(value=value)
                elif item.value.startswith(ENCRYPTED):
                    errors.append(f"{item.key}: no resource that is stored there is known")
                items.append(item)
            except TransformError as error:
                errors.append(f"{item.key}: {error}")
        if errors:
            raise BackupError(
                f"{len(errors)} values cannot be {done} by {self._path}, nothing was written:\n{first_lines(errors)}"
            )
        return contents.with_items(items)


@asynccontextmanager
async def sealing(path: str, prefix: str) -> AsyncIterator[Sealing]:
    """Load an EncryptionConfiguration, and connect to its KMS plugins for the duration of the context.

    Args:
        path: the configuration file.
        prefix: the prefix of the store's keys.

    Raises:
        ValueError: the file cannot be used.
    """
    encryption = Encryption(path, reload=False)
    await encryption.start()
    try:
        yield Sealing(encryption, path, prefix)
    finally:
        await encryption.close()


def resource_of(key: str) -> GroupResource | None:
    """Return the resource of a key (without the store's prefix), or None if the key does not belong to a resource."""
    first, _, remainder = key.partition("/")
    second = remainder.partition("/")[0]
    if (resource := UNUSUAL_PLACES.get(f"{first}/{second}") or UNUSUAL_PLACES.get(first)) is not None:
        return resource
    return GroupResource(first, second) if "." in first else _built_in().get(first)


@cache
def _built_in() -> dict[str, GroupResource]:
    return {
        facts.name: GroupResource(group.name, facts.name)
        for group in groups()
        for version in (*group.optional, *group.versions)
        for facts in resource_facts(group.name, version)
    }
