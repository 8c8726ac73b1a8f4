"""The options of the commands that read or write a store without a server."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import fields
from typing import Any, Final, TypeVar

import click

from tetrapod.apps.options.etcd import EtcdFlags
from tetrapod.apps.options.flag import Flag
from tetrapod.apps.stores import Store

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_FLAGS: Final[dict[str, Flag]] = {field.name: field.metadata["flag"] for field in fields(EtcdFlags)}
_ETCD: Final = ("cafile", "certfile", "keyfile", "prefix")
_ENCRYPTION: Final = "encryption_provider_config"


def store_options(command: F) -> F:
    """Add --data-dir, --etcd-servers and the related options to a function before it becomes a click command.

    Its first argument becomes the `Store` that they name.
    """

    def with_store(data_dir: str, etcd_servers: str, encryption_provider_config: str, **rest: Any) -> Any:
        etcd = {name: rest.pop(f"etcd_{name}") for name in _ETCD}
        return command(Store(etcd_servers or data_dir, **etcd, encryption=encryption_provider_config), **rest)

    with_store.__doc__ = command.__doc__
    with_store.__name__ = command.__name__
    with_store.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    options = [
        click.option(
            "--data-dir",
            default="data",
            show_default=True,
            help="The data directory of `tetrapod up`, with its SQLite database.",
        ),
        click.option(
            "--etcd-servers",
            default="",
            help="List of etcd servers to connect with instead (scheme://ip:port), comma separated.",
        ),
        *_etcd_options("etcd-"),
        _encryption_option(
            "", "The file with the EncryptionConfiguration, to decrypt a backup or to encrypt restored objects."
        ),
    ]
    return _with_options(with_store, options)  # type: ignore[return-value]


def endpoint_options(side: str, text: str) -> Callable[[F], F]:
    """Return a decorator that adds the options of one of two stores to a click command.

    Args:
        side: `from` or `to`. The option `--from` or `--to` takes the data directory or the etcd URLs of the store, and
            the names of the other options begin with the same word.
        text: the help text of `--from` or `--to`.
    """
    place = click.option(f"--{side}", f"{side}_place", required=True, help=text)
    encryption = _encryption_option(f"{side}-", "The file with the EncryptionConfiguration of the store.")
    return lambda command: _with_options(command, [place, *_etcd_options(f"{side}-"), encryption])


def store_of(side: str, values: dict[str, Any]) -> Store:
    """Return the store that the options of `endpoint_options` for this `side` (`from` or `to`) name.

    `values` are the values of click's parameters by name.
    """
    etcd = {name: values[f"{side}_{name}"] for name in _ETCD}
    return Store(values[f"{side}_place"], **etcd, encryption=values[f"{side}_{_ENCRYPTION}"])


def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop and return its result.

    Raises:
        click.ClickException: the work failed with an expected error. The text is one line.
    """
    import asyncio

    from tetrapod.generic.lifecycle import Unavailable
    from tetrapod.generic.storage.backend import CannotOpen
    from tetrapod.generic.storage.backup.contents import BackupError

    try:
        return asyncio.run(work)
    except (BackupError, CannotOpen, Unavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.strerror}: {error.filename}" if error.filename else str(error)) from None


def _etcd_options(prefix: str) -> list[Callable[[Any], Any]]:
    """Return the click options of a connection to an etcd, with the help texts and defaults of the servers' flags.

    `prefix` is put before the name of each option, such as "from-".
    """
    defaults = EtcdFlags()
    return [
        click.option(
            f"--{prefix}{name}",
            default=getattr(defaults, name),
            show_default=bool(getattr(defaults, name)),
            help=_FLAGS[name].help,
        )
        for name in _ETCD
    ]


def _encryption_option(prefix: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{prefix}{_FLAGS[_ENCRYPTION].name}", default="", help=text)


def _with_options(command: F, options: list[Callable[[Any], Any]]) -> F:
    for option in reversed(options):
        command = option(command)
    return command
