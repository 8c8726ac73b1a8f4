"""The four services as four processes over one real etcd, for tests of what differs from one process."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.etcd import Etcd, etcd_36
from support.server import command, environment, free_port, wait_ready

NAMES = ("auth", "core", "extensions", "aggregator")


class Services:
    """`url` is the aggregator's, `kubeconfig` an admin's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.etcd = Etcd(etcd_36(), directory / "etcd")
        self.ports = {name: free_port() for name in NAMES}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        argv = command("certs", "--out", str(self.certs), "--hosts", "localhost,127.0.0.1", "--server", self.url)
        subprocess.run(argv, check=True, env=environment(), stdout=subprocess.DEVNULL)

    @property
    def certs(self) -> Path:
        return self.directory / "certs"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports['aggregator']}"

    @property
    def ca(self) -> Path:
        return self.certs / "ca" / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.certs / "admin" / "kubeconfig"

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def start(self, key: str, *flags: str) -> None:
        """`key` is a service, or `core-2` for another replica of one; `aggregator-2` leads to `core-2`."""
        name, _, replica = key.partition("-")
        self.ports.setdefault(key, free_port())
        urls = {key: f"https://127.0.0.1:{port}" for key, port in self.ports.items()}
        argv = command("serve", name, "--data-dir", str(self.certs / name), "--bind-address", "127.0.0.1")
        argv += ["--secure-port", str(self.ports[key]), "--etcd-servers", self.etcd.url, *flags]
        if name == "aggregator":
            argv += ["--core-url", urls[f"core-{replica}" if replica else "core"], "--extensions-url", urls["extensions"]]
        else:
            argv += ["--aggregator-url", urls["aggregator"]]
        if name != "auth":
            argv += ["--auth-url", urls["auth"]]
        with self.log(key).open("ab") as out:
            self.processes[key] = subprocess.Popen(argv, stdout=out, stderr=out, env=environment())

    def wait_ready(self, name: str) -> None:
        wait_ready(f"https://127.0.0.1:{self.ports[name]}", self.processes[name], self.log(name))

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
