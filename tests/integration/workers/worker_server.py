"""A server with two workers over a real etcd, and access to its processes."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from support.etcd import Etcd, running_etcd
from support.server import Server, running
from support.waiting import until
from support.wire import Answer, Client

T = TypeVar("T")
TOKENS: Final = Path(__file__).parents[2] / "contract" / "tokens.csv"
COUNT: Final = 2
_ESTABLISHED: Final = "01"


WATCH: Final = (
    b"GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n"
    b"Connection: close\r\n\r\n"
)


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process, in the order in which they were started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class WorkerServer:
    """A running `tetrapod up --workers=2`."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url, self.ca = server.url, server.ca

    def pids(self) -> list[int]:
        """Return the processes of the workers, in the order in which they were started."""
        return children_of(self.server.process.pid)

    def client(self) -> Client:
        return Client(self)

    def connections(self, pid: int) -> int:
        """Return how many clients a process has connections of."""
        return len(_sockets_of(urlsplit(self.url).port or 0) & sockets_in(pid))

    def has_connection(self, pid: int, port: int) -> bool:
        """Return whether a process has the connection of a client's port open."""
        return bool(_sockets_of(urlsplit(self.url).port or 0, port) & sockets_in(pid))

    @contextmanager
    def of_each(
        self, connect: Callable[[], AbstractContextManager[T]], port_of: Callable[[T], int]
    ) -> Iterator[list[T]]:
        """Yield a connection to each worker, in the order of `pids`.

        Args:
            connect: opens a connection.
            port_of: returns the client's port of a connection.
        """
        with ExitStack() as stack:
            found: dict[int, T] = {}
            while len(found) < COUNT:
                connection = stack.enter_context(connect())
                found.setdefault(self._worker_of(port_of(connection)), connection)
            yield [found[pid] for pid in self.pids()]

    def _worker_of(self, port: int) -> int:
        """Return the worker that has the connection of a client's port."""
        (inode,) = _sockets_of(urlsplit(self.url).port or 0, port)
        return until(lambda: [pid for pid in self.pids() if inode in sockets_in(pid)])[0]

    def client_of_each(self) -> AbstractContextManager[list[Client]]:
        """Yield a client with an open connection for each worker, in the order of `pids`."""

        @contextmanager
        def connect() -> Iterator[Client]:
            with self.client() as client:
                assert client("GET", "/version").status == 200
                yield client

        return self.of_each(connect, _port_of)

    def wait_for_replacement(self, pid: int) -> int:
        """Return the process that replaces the worker `pid`, once it serves requests."""
        pids = until(self.pids, lambda pids: len(pids) == COUNT and pid not in pids)
        until(lambda: self.value("tetrapod_workers"), lambda value: value == COUNT)
        return pids[-1]

    def metrics(self, client: Client | None = None) -> str:
        with self.client() as own:
            return (client or own)("GET", "/metrics").body.decode()

    def value(self, series: str, client: Client | None = None) -> float:
        """Return the value of a series on the page of metrics, 0 if it is missing."""
        return value_of(self.metrics(client), series)


def value_of(page: str, series: str) -> float:
    """Return the value of a series, with its labels, on a page of metrics; 0 if it is missing."""
    match = re.search(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
    return float(match[1]) if match else 0.0


def _port_of(client: Client) -> int:
    assert client._connection is not None
    return int(client._connection.sock.getsockname()[1])


def _sockets_of(port: int, client: int | None = None) -> set[str]:
    """Return the inodes of established connections to a local port, those of one client's port if it is given."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = {row[9]: [int(end.rpartition(":")[2], 16) for end in row[1:3]] for row in rows if row[3] == _ESTABLISHED}
    return {inode for inode, (here, there) in ends.items() if here == port and client in (None, there)}


def sockets_in(pid: int) -> set[str]:
    """Return the inodes of the sockets that a process has open."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed since it was listed
            inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    return inodes


@contextmanager
def worker_server(directory: Path, flags: Sequence[str] = (), workers: int = COUNT) -> Iterator[WorkerServer]:
    """Run a server with workers over an etcd of its own, and yield it when all workers are ready."""
    with running_etcd(directory / "etcd") as etcd, server_over(etcd, directory, flags, workers) as server:
        yield server


@contextmanager
def server_over(etcd: Etcd, directory: Path, flags: Sequence[str] = (), workers: int = COUNT) -> Iterator[WorkerServer]:
    """Run a server with workers over an etcd, and yield it when all workers are ready."""
    given = [f"--workers={workers}", f"--etcd-servers={etcd.url}", f"--token-auth-file={TOKENS}", *flags]
    with running(directory / "data", *given) as server:
        until(server.log.read_text, lambda text: "Tetrapod is ready" in text)
        yield WorkerServer(server)


def certificates_of_each(server: WorkerServer) -> list[bytes]:
    """Return the certificates that new connections to the workers get, in DER."""
    address = urlsplit(server.url)
    context = ssl._create_unverified_context()

    @contextmanager
    def connect() -> Iterator[ssl.SSLSocket]:
        with (
            socket.create_connection((address.hostname, address.port), 20) as plain,
            context.wrap_socket(plain) as connection,
        ):
            yield connection

    with server.of_each(connect, lambda connection: int(connection.getsockname()[1])) as connections:
        return [connection.getpeercert(binary_form=True) or b"" for connection in connections]


def created(answer: Answer) -> Answer:
    assert answer.status == 201, answer.body
    return answer
