"""The four services as four processes over one real etcd, for tests of what differs from one process."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.etcd import Etcd, EtcdCluster, etcd_36
from support.network import Loopback, Network
from support.server import command, environment, free_port, wait_ready

NAMES = ("auth", "core", "extensions", "aggregator")


class Services:
    """`url` is the aggregator's, `kubeconfig` an admin's. `etcd` is a single member where nothing else is given."""

    def __init__(self, directory: Path, etcd: Etcd | EtcdCluster | None = None, network: Network | None = None) -> None:
        self.directory = directory
        self.etcd = etcd or Etcd(etcd_36(), directory / "etcd")
        self.network = network or Loopback()
        self.ports = {name: free_port() for name in NAMES}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        hosts = f"aggregator,localhost,127.0.0.1,{self.network.address('aggregator')}"
        argv = command("certs", "--out", str(self.certs), "--hosts", hosts, "--server", self.url)
        subprocess.run(argv, check=True, env=environment(), stdout=subprocess.DEVNULL)

    @property
    def certs(self) -> Path:
        return self.directory / "certs"

    @property
    def url(self) -> str:
        return self.address("aggregator")

    def address(self, name: str) -> str:
        return f"https://{self.network.address(name)}:{self.ports[name]}"

    @property
    def ca(self) -> Path:
        return self.certs / "ca" / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.certs / "admin" / "kubeconfig"

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def start(self, key: str, *flags: str, env: Mapping[str, str] | None = None) -> None:
        """`key` is a service, or `core-2` for another replica of one; `aggregator-2` leads to `core-2`."""
        name, _, replica = key.partition("-")
        self.ports.setdefault(key, free_port())
        urls = {key: f"https://{self.network.host(key)}:{port}" for key, port in self.ports.items()}
        argv = command("serve", name, "--data-dir", str(self.certs / name), "--bind-address", self.network.address(key))
        argv += ["--secure-port", str(self.ports[key]), "--etcd-servers", self.etcd.url, *flags]
        if name == "aggregator":
            argv += ["--core-url", urls[f"core-{replica}" if replica else "core"], "--extensions-url", urls["extensions"]]
        else:
            argv += ["--aggregator-url", urls["aggregator"]]
        if name != "auth":
            argv += ["--auth-url", urls["auth"]]
        with self.log(key).open("ab") as out:
            inside = self.network.inside(key)
            self.processes[key] = subprocess.Popen([*inside, *argv], stdout=out, stderr=out, env={**environment(), **(env or {})})

    def wait_ready(self, name: str) -> None:
        wait_ready(self.address(name), self.processes[name], self.log(name))

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> int:
        process = self.processes.pop(name)
        process.send_signal(number)
        try:
            return process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


@contextmanager
def running_services(directory: Path, **flags: tuple[str, ...]) -> Iterator[Services]:
    """All four, ready; `flags` by service."""
    services = Services(directory)
    services.etcd.start()
    try:
        for name in NAMES:
            services.start(name, *flags.get(name, ()))
        for name in NAMES:
            services.wait_ready(name)
        yield services
    finally:
        for name in list(services.processes):
            services.stop(name)
        services.etcd.stop()
