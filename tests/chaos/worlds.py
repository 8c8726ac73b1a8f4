"""The servers under test: four services or replicas of each, over three etcd members and a redis; or one process over
SQLite.
"""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from chaos.http import Address
from chaos.kinds import Kind
from chaos.links import Links
from chaos.truth import Truth, truth_of
from chaos.witness import Witness
from support.etcd import EtcdCluster, etcd_36
from support.identity import identity_of
from support.network import Loopback, Namespaces, Network
from support.redis import Redis
from support.server import SERVICES, environment, free_port, wait_ready
from support.services import NAMES, Services

MEMBERS: Final = ("etcd1", "etcd2", "etcd3")
RECORD: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS recorded AS SELECT key, value, revision FROM revisions;
CREATE TRIGGER IF NOT EXISTS record AFTER INSERT ON revisions
    BEGIN INSERT INTO recorded VALUES (new.key, new.value, new.revision); END;
COMMIT;
"""
"""SQLite itself records every revision, because a full store compacts its history."""


class World(Protocol):
    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses that serve all kinds."""

    def replicas(self, kind: Kind) -> Sequence[Address]:
        """Return the addresses of the replicas that serve a kind, if there are several."""

    @property
    def witness(self) -> Witness | None:
        """The witness that must record from the beginning, if the store needs one."""

    async def truth(self) -> Truth:
        """Return the store's history. Nothing may write any more."""

    def logs(self) -> list[Path]: ...


def address_of(url: str, kubeconfig: Path) -> Address:
    """Return the address with the client certificate of a kubeconfig's user."""
    return Address(url, identity_of(kubeconfig).context())


class FourServices:
    """Four services.

    Args:
        environments: additional variables of each service.
        flags: additional flags of each service.
        replicas: the number of replicas of each service.
        links: whether the services reach etcd through relays, which can delay all bytes. The network must be loopback.
    """

    def __init__(
        self,
        directory: Path,
        network: Network,
        etcd_flags: tuple[str, ...] = (),
        environments: Mapping[str, Mapping[str, str]] | None = None,
        flags: Mapping[str, tuple[str, ...]] | None = None,
        replicas: Mapping[str, int] | None = None,
        *,
        links: bool = False,
    ) -> None:
        self.directory = directory
        for name in (*MEMBERS, "redis", *NAMES):
            network.join(name)
        self.network = network
        self.etcd = EtcdCluster(etcd_36(), directory / "etcd", network=network, flags=etcd_flags)
        self.links = Links(self.etcd.members) if links else None
        if self.links is not None:
            self.etcd.relays = self.links.urls
        self.services = Services(directory, self.etcd, network, replicas)
        self.redis = Redis(directory, network)
        self.witness = Witness(self.etcd)
        self._environments = environments or {}
        self._flags = flags or {}

    def keys(self, name: str) -> list[str]:
        """Return the replicas of a service."""
        return [key for key in self.services.keys if key.partition("-")[0] == name]

    def address(self, key: str) -> Address:
        return address_of(self.services.address(key), self.services.kubeconfig)

    @property
    def addresses(self) -> list[Address]:
        return [self.address(key) for key in self.keys("aggregator")]

    def replicas(self, kind: Kind) -> list[Address]:
        keys = self.keys(kind.service)
        return [self.address(key) for key in keys] if len(keys) > 1 else []

    def start(self, key: str) -> None:
        name = key.partition("-")[0]
        flags = () if name == "auth" else ("--redis-url", self.redis.url)
        self.services.start(key, *flags, *self._flags.get(name, ()), env=self._environments.get(name))

    def start_all(self) -> None:
        self.etcd.start()
        if self.links is not None:
            self.links.start()
        self.redis.start()
        for key in self.services.keys:
            self.start(key)
        for key in self.services.keys:
            self.services.wait_ready(key)

    async def truth(self) -> Truth:
        return await self.witness.truth()

    def logs(self) -> list[Path]:
        return [self.services.log(key) for key in self.services.keys]

    def close(self) -> None:
        with contextlib.suppress(Exception):
            for member in self.etcd.members:
                member.resume()
        for process in self.services.processes.values():
            process.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.services.stop_all(*self.services.processes)
        if self.links is not None:
            self.links.close()
        self.redis.stop()
        self.etcd.stop()


class Embedded:
    """One process over SQLite. `launcher` is a module to run instead of the command line, for planted bugs."""

    witness: Witness | None = None

    def __init__(
        self, directory: Path, launcher: tuple[str, ...] = ("tetrapod.cli.main",), flags: tuple[str, ...] = ()
    ) -> None:
        self.directory = directory
        self._launcher = launcher
        self._flags = flags
        self._port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def addresses(self) -> list[Address]:
        return [address_of(self.url, self.directory / "kubeconfig")]

    def replicas(self, kind: Kind) -> list[Address]:
        return []

    def start(self) -> None:
        argv = [sys.executable, "-m", *self._launcher, "up", "--data-dir", str(self.directory)]
        argv += ["--bind-address", "127.0.0.1", "--secure-port", str(self._port), *self._flags]
        env = {**environment(), "PYTHONPATH": f"{SERVICES}:{Path(__file__).parents[1]}"}
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.logs()[0].open("ab") as out:
            self.process = subprocess.Popen(argv, stdout=out, stderr=out, env=env)
        wait_ready(self.url, self.process, self.logs()[0])
        with self._database() as connection:
            connection.executescript(RECORD)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(next(self.directory.glob("*.db")), timeout=30)) as connection:
            yield connection

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    async def truth(self) -> Truth:
        """Read the history that SQLite has recorded."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(30)
        self.process = None
        with self._database() as connection:
            return truth_of(connection.execute("SELECT key, value, revision FROM recorded ORDER BY revision"))

    def logs(self) -> list[Path]:
        return [self.directory.parent / f"{self.directory.name}.log"]

    def close(self) -> None:
        self.kill()


@contextmanager
def four_services(directory: Path, *, cables: bool = False, **more: Any) -> Iterator[FourServices]:
    """Run the servers. With `cables` each is in its own network namespace."""
    network = Namespaces() if cables else Loopback()
    try:
        world = FourServices(directory, network, **more)
        try:
            world.start_all()
            yield world
        finally:
            world.close()
    finally:
        network.close()


@contextmanager
def embedded(directory: Path, **more: Any) -> Iterator[Embedded]:
    world = Embedded(directory, **more)
    try:
        world.start()
        yield world
    finally:
        world.close()
