"""Starts a real etcd for tests: 3.6 built from its Go module (tools/etcd.sh), and Debian's where the machine has it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from support.server import free_port

ROOT = Path(__file__).parents[2]


@cache
def etcd_36() -> str:
    """The binary; the first call on a machine builds it, which takes minutes."""
    return subprocess.run([str(ROOT / "tools/etcd.sh")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def etcd_of_the_system() -> str | None:
    return shutil.which("etcd")


class Etcd:
    """One member on loopback. Its data outlive `stop`, so that it can be started again."""

    def __init__(self, binary: str, directory: Path, flags: Sequence[str] = (), scheme: str = "http") -> None:
        self._binary = binary
        self._directory = directory
        self._flags = flags
        self._scheme = scheme
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self._peer_port = free_port()
        self._metrics_port = free_port()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def start(self) -> None:
        peer, metrics = f"http://127.0.0.1:{self._peer_port}", f"http://127.0.0.1:{self._metrics_port}"
        command = [self._binary, "--name=test", f"--data-dir={self._directory}", "--log-level=error", "--unsafe-no-fsync"]
        if "3.4" in subprocess.run([self._binary, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]:
            command.remove("--unsafe-no-fsync")
        command += [f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}", f"--listen-metrics-urls={metrics}"]
        command += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=test={peer}"]
        self._process = subprocess.Popen([*command, *self._flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait_healthy(f"{metrics}/health")

    def _wait_healthy(self, url: str) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"etcd ended with {self._process.returncode}")
            try:
                with urllib.request.urlopen(url, timeout=1) as answer:
                    if b'"true"' in answer.read():
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)  # a process of somebody else: there is nothing to wait on but its answer
        raise TimeoutError("etcd did not become healthy")

    def pause(self) -> None:
        """Stop it where it is: connections stay open, nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
