"""The stores that `backup`, `restore` and `migrate` read and write: a data directory of `tetrapod up`, or an etcd."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tetrapod.apps.options.options import DATABASE, KEYS
from tetrapod.generic.storage.backend import key_root

if TYPE_CHECKING:
    from tetrapod.generic.storage.backup.contents import Contents
    from tetrapod.generic.storage.etcd.backend import EtcdBackend


@dataclass(frozen=True, slots=True)
class Store:
    """A store that is read or written without a server.

    Attributes:
        place: the path of a data directory, or the URLs of an etcd, comma-separated.
        cafile: the CA of the etcd; "" for none.
        certfile: the client certificate for the etcd; "" for none.
        keyfile: the key of that certificate.
        prefix: the prefix of all keys, as --etcd-prefix.
        encryption: the file of the EncryptionConfiguration; "" for none.
    """

    place: str
    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""
    prefix: str = "/registry"
    encryption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", key_root(self.prefix))

    @property
    def is_etcd(self) -> bool:
        """Whether the store is an etcd."""
        return "://" in self.place

    @property
    def database(self) -> Path:
        """The path of the SQLite database in the data directory."""
        return Path(self.place) / DATABASE

    def etcd(self) -> EtcdBackend:
        """Return a new backend for the etcd, which the caller closes. It does not compact."""
        from tetrapod.generic.storage.etcd.backend import EtcdBackend

        servers = [url for url in self.place.split(",") if url]
        return EtcdBackend(
            servers, self.cafile or None, self.certfile or None, self.keyfile or None, compaction_seconds=0
        )

    async def read(self, *, keys: bool) -> Contents:
        """Return all objects at one revision, as they are stored.

        Args:
            keys: whether to include the certificates and keys of a data directory.

        Raises:
            BackupError, CannotOpen, Unavailable: the store cannot be read.
        """
        from dataclasses import replace

        from tetrapod.generic.storage.backup.reading import read_etcd, read_sqlite

        if not self.is_etcd:
            contents = read_sqlite(self.database, self.prefix, "embedded")
            return replace(contents, files=self._keys()) if keys else contents
        backend = self.etcd()
        try:
            return await read_etcd(backend, self.prefix, "etcd")
        finally:
            await backend.close()

    async def decrypted(self, contents: Contents) -> Contents:
        """Return the contents with all values decrypted. Without an EncryptionConfiguration return them as they are.

        Raises:
            BackupError, ValueError: a value cannot be decrypted, or the configuration is invalid.
        """
        if not self.encryption:
            return contents
        from tetrapod.generic.storage.backup.sealing import sealing

        async with sealing(self.encryption, self.prefix) as configured:
            return await configured.decrypted(contents)

    async def encrypted(self, contents: Contents) -> Contents:
        """Return the contents encrypted as a server over this store encrypts them.

        Values that are already encrypted are decrypted first. Without an EncryptionConfiguration return the contents as
        they are.

        Raises:
            BackupError, ValueError: a value cannot be decrypted, or the configuration is invalid.
        """
        if not self.encryption:
            return contents
        from tetrapod.generic.storage.backup.sealing import sealing

        async with sealing(self.encryption, self.prefix) as configured:
            return await configured.encrypted(await configured.decrypted(contents))

    async def write(self, contents: Contents) -> int:
        """Write all objects, and the certificates and keys in `contents`; then read the objects again and compare them.

        Returns:
            The revision of the store.

        Raises:
            BackupError: the store is not empty, the data directory has certificates, or other objects were read.
        """
        from tetrapod.generic.storage.backup.contents import BackupError
        from tetrapod.generic.storage.backup.writing import differences, write_etcd, write_sqlite

        if self.is_etcd:
            backend = self.etcd()
            try:
                revision = await write_etcd(backend, self.prefix, contents)
            finally:
                await backend.close()
        else:
            self._check_keys(contents)
            revision = write_sqlite(self.database, self.prefix, contents)
            self._write_keys(contents)
        written = await self.read(keys=False)
        if wrong := differences(contents.items, written.items):
            raise BackupError(f"{len(wrong)} keys are not what was written ({wrong[0]} …); did somebody else write?")
        return revision

    def _keys(self) -> dict[str, bytes]:
        directory = Path(self.place) / KEYS
        return {f"{KEYS}/{file.name}": file.read_bytes() for file in sorted(directory.glob("*")) if file.is_file()}

    def _check_keys(self, contents: Contents) -> None:
        from tetrapod.generic.storage.backup.contents import BackupError

        directory = Path(self.place) / KEYS
        if contents.files and directory.exists() and any(directory.iterdir()):
            raise BackupError(
                f"{directory} has certificates already; restore into another directory, or with --without-keys"
            )

    def _write_keys(self, contents: Contents) -> None:
        directory = Path(self.place) / KEYS
        if contents.files:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, data in contents.files.items():
            file = directory / Path(name).name
            file.touch(0o644 if file.suffix in (".crt", ".pub", ".json") else 0o600)
            file.write_bytes(data)
