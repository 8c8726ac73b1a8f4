"""The stores that `backup`, `restore` and `migrate` speak of: a data directory of `up`, or an etcd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tetrapod.apps.options.options import DATABASE, KEYS

if TYPE_CHECKING:
    from tetrapod.generic.storage.backup.contents import Contents
    from tetrapod.generic.storage.etcd.backend import EtcdBackend

F = TypeVar("F", bound=Callable[..., Any])

_ENCRYPTION: Final = "encryption-provider-config"
_PARTS: Final = ("cafile", "certfile", "keyfile", "prefix", "encryption_provider_config")


@dataclass(frozen=True, slots=True)
class Store:
    """`place` is a directory, or etcd's URLs, comma-separated; `encryption` the file of its EncryptionConfiguration, if there is one."""

    place: str
    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""
    prefix: str = "/registry"
    encryption: str = ""

    @property
    def is_etcd(self) -> bool:
        return "://" in self.place

    @property
    def database(self) -> Path:
        return Path(self.place) / DATABASE

    def etcd(self) -> EtcdBackend:
        from tetrapod.generic.storage.etcd.backend import EtcdBackend

        servers = [url for url in self.place.split(",") if url]
        return EtcdBackend(servers, self.cafile or None, self.certfile or None, self.keyfile or None, compaction_seconds=0)

    async def read(self, *, keys: bool) -> Contents:
        """`keys`: with the certificates and keys of a data directory."""
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
        """Decrypted, if that can be. Raises BackupError, ValueError."""
        if not self.encryption:
            return contents
        from tetrapod.generic.storage.backup.sealing import sealing

        async with sealing(self.encryption, self.prefix) as found:
            return await found.decrypted(contents)

    async def encrypted(self, contents: Contents) -> Contents:
        """Encrypted as a server of this store does it, whatever is encrypted already; as it is where nothing is said of that.

        Raises BackupError, ValueError.
        """
        if not self.encryption:
            return contents
        from tetrapod.generic.storage.backup.sealing import sealing

        async with sealing(self.encryption, self.prefix) as found:
            return await found.encrypted(await found.decrypted(contents))

    async def write(self, contents: Contents) -> int:
        """Copy the objects, verify them by reading them again, and return the revision of the new store."""
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
        found = await self.read(keys=False)
        if wrong := differences(contents.items, found.items):
            raise BackupError(f"{len(wrong)} keys are not what was written ({wrong[0]} …); did somebody else write?")
        return revision

    def _keys(self) -> dict[str, bytes]:
        directory = Path(self.place) / KEYS
        return {f"{KEYS}/{file.name}": file.read_bytes() for file in sorted(directory.glob("*")) if file.is_file()}

    def _check_keys(self, contents: Contents) -> None:
        from tetrapod.generic.storage.backup.contents import BackupError

        directory = Path(self.place) / KEYS
        if contents.files and directory.exists() and any(directory.iterdir()):
            raise BackupError(f"{directory} has certificates already; restore into another directory, or with --without-keys")

    def _write_keys(self, contents: Contents) -> None:
        directory = Path(self.place) / KEYS
        if contents.files:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, data in contents.files.items():
            file = directory / Path(name).name
            file.touch(0o644 if file.suffix in (".crt", ".pub", ".json") else 0o600)
            file.write_bytes(data)


def store_options(command: F) -> F:
    """--data-dir, or --etcd-servers with what belongs to it; the command is given a `Store`."""

    def with_store(
        data_dir: str,
        etcd_servers: str,
        etcd_cafile: str,
        etcd_certfile: str,
        etcd_keyfile: str,
        etcd_prefix: str,
        encryption_provider_config: str,
        **rest: Any,
    ) -> Any:
        place = etcd_servers or data_dir
        return command(Store(place, etcd_cafile, etcd_certfile, etcd_keyfile, etcd_prefix, encryption_provider_config), **rest)

    with_store.__doc__ = command.__doc__
    with_store.__name__ = command.__name__
    with_store.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    found: Any = with_store
    for option in reversed(
        [
            click.option("--data-dir", default="data", show_default=True, help="The data directory of `up`, where objects are in SQLite;"),
            click.option("--etcd-servers", default="", help="or etcd's URLs, comma-separated."),
            *_etcd_options(""),
            click.option(
                f"--{_ENCRYPTION}", default="", help="How it is encrypted: a backup is decrypted by this file, a restoration encrypted."
            ),
        ]
    ):
        found = option(found)
    return found  # type: ignore[no-any-return]


def _etcd_options(side: str) -> list[Callable[[Any], Any]]:
    dash = f"{side}-" if side else "etcd-"
    return [
        click.option(f"--{dash}cafile", default="", help="The CA that signed etcd's certificate."),
        click.option(f"--{dash}certfile", default="", help="The client certificate for etcd."),
        click.option(f"--{dash}keyfile", default="", help="Its key."),
        click.option(f"--{dash}prefix", default="/registry", show_default=True, help="What every key begins with."),
    ]


def side_options(side: str, what: str) -> Callable[[F], F]:
    """--from and its like: a store by place. The command is given it by the keyword `source` or `target`."""

    def decorate(command: F) -> F:
        found: Any = command
        encrypted = click.option(f"--{side}-{_ENCRYPTION}", default="", help="How it is encrypted: a file with an EncryptionConfiguration.")
        for option in reversed([click.option(f"--{side}", f"{side}_place", required=True, help=what), *_etcd_options(side), encrypted]):
            found = option(found)
        return found  # type: ignore[no-any-return]

    return decorate


def side_of(side: str, values: dict[str, Any]) -> Store:
    """Open the store that options of `side_options` select."""
    return Store(values[f"{side}_place"], *(values[f"{side}_{name}"] for name in _PARTS))


def done(work: Any) -> Any:
    """Run it; what keeps it from being done is said in a line."""
    import asyncio

    from tetrapod.generic.lifecycle.unavailable import Unavailable
    from tetrapod.generic.storage.backend import CannotOpen
    from tetrapod.generic.storage.backup.contents import BackupError

    try:
        return asyncio.run(work)
    except (BackupError, CannotOpen, Unavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.strerror}: {error.filename}" if error.filename else str(error)) from None
