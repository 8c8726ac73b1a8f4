"""Start and stop a real server as a child process."""

from __future__ import annotations

import http.client
import itertools
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

SERVICES = Path(__file__).parents[2] / "services"


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    url: str
    data_dir: Path
    log: Path

    @property
    def ca(self) -> Path:
        return self.data_dir / "pki" / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "kubeconfig"

    def connect(self) -> http.client.HTTPSConnection:
        """Connect as the administrator, with a client certificate."""
        pki = self.data_dir / "pki"
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        address = urlsplit(self.url)
        assert address.hostname is not None
        return http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=30)

    def stop(self, timeout: float = 30) -> int:
        """Send SIGTERM, wait, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def _candidates() -> Iterator[int]:
    """Yield the ports of this test process for ever, in random order.

    They lie below the kernel's range for outgoing connections. Each worker of pytest-xdist has a range of its own, so
    that two workers never hand out the same port.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports = list(range(10_000 + worker, 30_000, workers))
    random.SystemRandom().shuffle(ports)
    return itertools.cycle(ports)


_PORTS = _candidates()


def free_port() -> int:
    """Return a port for a server to bind later.

    No outgoing connection uses it before, and this process does not get it again.
    """
    for port in _PORTS:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("unreachable")


def command(*args: str, module: str = "tetrapod.cli.main") -> list[str]:
    return [sys.executable, "-m", module, *args]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SERVICES)}


def without_cluster() -> dict[str, str]:
    """Return the environment of this process without the variables that name a cluster, such as KUBECONFIG."""
    return {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}


def wait_ready(
    url: str, process: subprocess.Popen[bytes] | None, log: Path, timeout: float = 60, path: str = "/readyz"
) -> None:
    context = ssl._create_unverified_context()
    deadline = time.monotonic() + timeout
    while True:
        try:
            with urllib.request.urlopen(f"{url}{path}", context=context, timeout=5) as answer:
                if answer.status == 200:
                    return
        except urllib.error.HTTPError as error:
            error.close()  # Python 3.14 warns otherwise
        except OSError:
            pass
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}:\n{log.read_text()[-4000:]}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"not ready after {timeout} s:\n{log.read_text()[-4000:]}")
        time.sleep(0.05)


@contextmanager
def running(data_dir: Path, *flags: str, port: int = 0) -> Iterator[Server]:
    """Run `tetrapod up` with these flags, yield it when it is ready, and stop it at the end."""
    server = start(data_dir, *flags, port=port)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def start(data_dir: Path, *flags: str, port: int = 0) -> Server:
    port = port or free_port()
    data_dir.mkdir(parents=True, exist_ok=True)
    log = data_dir / "server.log"
    argv: Sequence[str] = command(
        "up", "--data-dir", str(data_dir), "--bind-address", "127.0.0.1", "--secure-port", str(port), *flags
    )
    with log.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=environment())
    server = Server(process, f"https://127.0.0.1:{port}", data_dir, log)
    try:
        wait_ready(server.url, process, log)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return server


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Send SIGSTOP, and return when all threads have stopped."""
    process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while not _frozen(process.pid):
        assert time.monotonic() < deadline, f"{process.pid} does not stop"
        time.sleep(0.005)


def _frozen(pid: int) -> bool:
    try:
        stats = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    except FileNotFoundError:  # a thread has ended since it was listed
        return False
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Terminate a process; kill it if it does not end within 20 seconds."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
