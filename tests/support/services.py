"""The four services as four processes over one real etcd, for tests of behaviour that differs from that of one
process.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.etcd import Etcd, EtcdCluster, etcd_36, running_etcd
from support.kubectl import Kubectl
from support.network import Loopback, Network
from support.releases import Release
from support.server import command, environment, free_port, wait_ready

NAMES = ("auth", "core", "extensions", "aggregator")
SPEAKS_TO = {
    "aggregator": ("core", "extensions", "auth"),
    "core": ("aggregator", "auth"),
    "extensions": ("aggregator", "auth"),
    "auth": ("aggregator",),
}


def replica_keys(name: str, count: int) -> list[str]:
    return [name, *(f"{name}-{number}" for number in range(2, count + 1))]


class Services:
    """The processes of the four services and their etcd.

    Each process has a key: the name of its service, followed by a number from the second replica on (`core-2`). Each
    process gets the URLs of all replicas of the services that it calls.

    Args:
        etcd: a single member if None.
        replicas: the number of replicas by service; 1 if missing.
        sockets: whether the services reach each other by Unix sockets.

    Attributes:
        url: the address of the first aggregator.
        kubeconfig: that of an administrator.
    """

    def __init__(
        self,
        directory: Path,
        etcd: Etcd | EtcdCluster | None = None,
        network: Network | None = None,
        replicas: Mapping[str, int] | None = None,
        module: str = "tetrapod.cli.main",
        *,
        sockets: bool = False,
    ) -> None:
        self.directory = directory
        # Not below `directory`: the path of a Unix socket has at most 107 bytes.
        self.sockets = Path(tempfile.mkdtemp(prefix="sockets-")) if sockets else None
        self._module = module
        self.etcd = etcd or Etcd(etcd_36(), directory / "etcd")
        self.network = network or Loopback()
        self.keys = [key for name in NAMES for key in replica_keys(name, (replicas or {}).get(name, 1))]
        self.ports = {key: free_port() for key in self.keys}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.issue_certificates()

    def issue_certificates(self) -> None:
        """Create the certificates of all services that are missing or expire soon."""
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

    @property
    def kubectl(self) -> Kubectl:
        """That of the administrator."""
        return Kubectl(self.directory, self.kubeconfig)

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def start(
        self, key: str, *flags: str, env: Mapping[str, str] | None = None, release: Release | None = None
    ) -> None:
        """Start a process, of another release if `release` is given."""
        name = key.partition("-")[0]
        argv = command(
            "serve",
            name,
            "--data-dir",
            str(self.certs / name),
            "--bind-address",
            self.network.address(key),
            module=self._module,
        )
        argv += ["--secure-port", str(self.ports[key]), "--etcd-servers", self.etcd.url, *flags]
        for other in SPEAKS_TO[name]:
            argv += [f"--{other}-url={self._urls(other)}"]
        if self.sockets is not None:
            argv += ["--unix-socket", str(self.socket(name))]
            argv += ["--external-hostname", self.url.removeprefix("https://")] if name == "auth" else []
        variables = {**environment(), **(env or {})}
        if release is not None:
            argv[0], variables = release.python, {**variables, **release.environment}
        with self.log(key).open("ab") as out:
            self.processes[key] = subprocess.Popen(
                [*self.network.command_prefix(key), *argv], stdout=out, stderr=out, env=variables
            )

    def socket(self, name: str) -> Path:
        assert self.sockets is not None
        return self.sockets / f"{name}.sock"

    def _urls(self, name: str) -> str:
        """Return the URLs of all replicas of a service, separated by commas."""
        if self.sockets is not None:
            return f"unix://{self.socket(name)}"
        keys = [key for key in self.keys if key.partition("-")[0] == name]
        return ",".join(f"https://{self.network.host(key)}:{self.ports[key]}" for key in keys)

    def wait_ready(self, name: str) -> None:
        wait_ready(self.address(name), self.processes[name], self.log(name))

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> int:
        process = self.processes.pop(name)
        process.send_signal(number)
        return self._ended(process)

    def stop_all(self, *keys: str) -> int:
        """Stop processes in parallel and return the highest of their exit codes."""
        processes = [self.processes.pop(key) for key in keys]
        for process in processes:
            process.terminate()
        return max((self._ended(process) for process in processes), default=0)

    @staticmethod
    def _ended(process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


@contextmanager
def running_services(
    directory: Path, replicas: Mapping[str, int] | None = None, sockets: bool = False, /, **flags: tuple[str, ...]
) -> Iterator[Services]:
    """Run all services and yield them when they are ready.

    Args:
        sockets: whether the services reach each other by Unix sockets.
        flags: by service, or by key for a single replica.
    """
    with running_etcd(directory / "etcd") as etcd:
        services = Services(directory, etcd, replicas=replicas, sockets=sockets)
        try:
            for key in services.keys:
                services.start(key, *flags.get(key, flags.get(key.partition("-")[0], ())))
            for key in services.keys:
                services.wait_ready(key)
            yield services
        finally:
            services.stop_all(*services.processes)
            if services.sockets is not None:
                shutil.rmtree(services.sockets)
