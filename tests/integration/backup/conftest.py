"""An etcd shared by the tests of backups, each with its own prefix; and stores with varied content."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.etcd import Etcd, running_etcd
from tetrapod.cli.main import main
from tetrapod.generic.storage.backend import Backend

_numbers = itertools.count()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as found:
        yield found


@pytest.fixture
def prefix() -> str:
    return f"/registry{next(_numbers)}"


@pytest.fixture
def tetrapod() -> Callable[..., Result]:
    """Run the command line in this process."""

    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return run


async def filled(backend: Backend, prefix: str) -> None:
    """Write objects, some of them updated and deleted, one with a lease, and one that is not UTF-8."""
    for number in range(700):
        await backend.put_if(
            f"{prefix}/configmaps/default/c{number:03}", b'{"kind":"ConfigMap","data":{"n":"%d"}}' % number, 0
        )
    first = await backend.get(f"{prefix}/configmaps/default/c000")
    assert first is not None
    await backend.put_if(first.key, b'{"kind":"ConfigMap","data":{"n":"new"}}', first.mod_revision)
    last = await backend.get(f"{prefix}/configmaps/default/c699")
    assert last is not None
    await backend.delete_if(last.key, last.mod_revision)
    await backend.put_if(f"{prefix}/secrets/default/s", b"k8s:enc:aescbc:v1:key1:\xff\x00", 0)
    await backend.put_if(f"{prefix}/events/default/e", b'{"kind":"Event"}', 0, lease=await backend.grant_lease(1000))
