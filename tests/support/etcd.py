"""Start real etcd servers for tests: 3.6, built from its Go module by tools/etcd.sh, and Debian's if it is
installed.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from support.network import Loopback, Network
from support.server import free_port, freeze

ROOT = Path(__file__).parents[2]


@cache
def etcd_36() -> str:
    """Return the path of the etcd 3.6 binary. The first call on a machine builds it, which takes minutes."""
    return path_from("etcd.sh")


def path_from(tool: str, *arguments: str) -> str:
    """Return the path that a script of `tools` prints, which builds what is missing there."""
    command = [str(ROOT / "tools" / tool), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def etcd_of_the_system() -> str | None:
    return shutil.which("etcd")


class Etcd:
    """One etcd member, on loopback by default. Its data survive `stop`, so that it can be started again."""

    def __init__(
        self,
        binary: str,
        directory: Path,
        flags: Sequence[str] = (),
        scheme: str = "http",
        *,
        name: str = "test",
        network: Network | None = None,
    ) -> None:
        self.name = name
        self.directory = directory
        self.cluster: Sequence[Etcd] = (self,)
        self._binary = binary
        self._flags = flags
        self._scheme = scheme
        self._network = network or Loopback()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self._peer_port = free_port()
        self._metrics_port = free_port()

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self._network.address(self.name)}:{self.port}"

    @property
    def peer(self) -> str:
        return f"http://{self._network.address(self.name)}:{self._peer_port}"

    @property
    def metrics(self) -> str:
        return f"http://{self._network.address(self.name)}:{self._metrics_port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.launch()
        self.wait_healthy()

    def launch(self) -> None:
        command = [
            self._binary,
            f"--name={self.name}",
            f"--data-dir={self.directory}",
            "--log-level=error",
            "--unsafe-no-fsync",
        ]
        if (
            "3.4"
            in subprocess.run(
                [self._binary, "--version"], check=True, stdout=subprocess.PIPE, text=True
            ).stdout.splitlines()[0]
        ):
            command.remove("--unsafe-no-fsync")
        command += [
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-metrics-urls={self.metrics}",
        ]
        command += [f"--listen-peer-urls={self.peer}", f"--initial-advertise-peer-urls={self.peer}"]
        command += ["--initial-cluster=" + ",".join(f"{member.name}={member.peer}" for member in self.cluster)]
        argv = [*self._network.command_prefix(self.name), *command, *self._flags]
        self._process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_healthy(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"etcd ended with {self._process.returncode}")
            try:
                with urllib.request.urlopen(f"{self.metrics}/health", timeout=1) as answer:
                    if b'"true"' in answer.read():
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)  # etcd offers no notification, so poll
        raise TimeoutError("etcd did not become healthy")

    def call(self, path: str, body: Any = None, timeout: float = 5) -> Any:
        """Call etcd's JSON gateway (`/v3/kv/range` …) without Tetrapod's own client. Raises OSError."""
        request = urllib.request.Request(
            f"{self.url}{path}", json.dumps(body or {}).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def value(self, key: str) -> bytes:
        """Return the value of a key as it is stored. The key must exist."""
        response = self.call("/v3/kv/range", {"key": b64encode(key.encode()).decode()})
        return b64decode(response["kvs"][0]["value"])

    def put(self, key: str, value: bytes) -> None:
        """Store a value, past the servers that use this etcd."""
        self.call("/v3/kv/put", {"key": b64encode(key.encode()).decode(), "value": b64encode(value).decode()})

    def values(self, prefix: str) -> dict[str, bytes]:
        """Return the stored values of all keys that begin with a prefix that ends with a slash."""
        end = f"{prefix[:-1]}0"
        bounds = {"key": b64encode(prefix.encode()).decode(), "range_end": b64encode(end.encode()).decode()}
        found = self.call("/v3/kv/range", bounds).get("kvs", [])
        return {b64decode(kv["key"]).decode(): b64decode(kv["value"]) for kv in found}

    def pause(self) -> None:
        """Suspend the process: its connections stay open, but it answers nothing."""
        assert self._process is not None
        freeze(self._process)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill the process with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_etcd(directory: Path) -> Iterator[Etcd]:
    """Run an etcd with a new store, which is deleted at the end: its write-ahead log takes 128 MB from the start."""
    etcd = Etcd(etcd_36(), directory)
    etcd.start()
    try:
        yield etcd
    finally:
        etcd.stop()
        shutil.rmtree(directory)


class EtcdCluster:
    """An etcd cluster with members `etcd1`, `etcd2`, …, each with its own directory below `directory`.

    Attributes:
        relays: the URLs of relays in front of the members, for programs that use the cluster.
    """

    def __init__(
        self, binary: str, directory: Path, size: int = 3, flags: Sequence[str] = (), network: Network | None = None
    ) -> None:
        names = [f"etcd{number}" for number in range(1, size + 1)]
        self.members = [Etcd(binary, directory / name, flags, name=name, network=network) for name in names]
        for member in self.members:
            member.cluster = self.members
        self.relays: Sequence[str] = ()

    @property
    def url(self) -> str:
        """The URLs of all members, or of their relays if there are any, in the format of `--etcd-servers`."""
        return ",".join(self.relays or [member.url for member in self.members])

    def start(self) -> None:
        for member in self.members:
            if not member.running:
                member.launch()
        for member in self.members:
            member.wait_healthy()

    def leader(self, timeout: float = 30) -> Etcd:
        """Wait until a running member reports itself as the leader, and return it.

        Raises TimeoutError after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for member in self.members:
                if not member.running:
                    continue
                try:
                    status = member.call("/v3/maintenance/status", timeout=1)
                except OSError:
                    continue
                if status.get("leader") == status["header"]["member_id"]:
                    return member
            time.sleep(0.02)
        raise TimeoutError("etcd has no leader")

    def stop(self) -> None:
        for member in self.members:
            member.stop()
