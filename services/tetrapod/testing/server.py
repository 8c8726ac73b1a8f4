"""`Server`: the whole API server in a thread of this process, over a store in memory.

Why a thread: a process would cost an import of everything for each server, some 90 MB, and a channel for what is now a call. What is
measured is in docs/TESTING.md.
"""

from __future__ import annotations

import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tetrapod.testing.loop import LoopThread

if TYPE_CHECKING:
    from tetrapod.cli.options import Options
    from tetrapod.generic.storage.sqlite.backend import SqliteBackend
    from tetrapod.generic.storage.sqlite.snapshots import Snapshot
    from tetrapod.testing.client import Client
    from tetrapod.testing.counted import Counted

_ATTEMPTS: Final = 5


class State:
    """All that a server had stored at one moment. Opaque; may be given to `reset` of any server, again and again."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __len__(self) -> int:
        """How many objects it has."""
        return len(self._snapshot.entries)

    def __repr__(self) -> str:
        return f"<State of {len(self)} objects at revision {self._snapshot.revision}>"


class Server:
    """A running server, ready when it is made. Use it as a context manager, or `close` it.

    `flags` are those of `tetrapod up`, but for those that name another store. Controllers run as in a cluster (garbage collection,
    namespaces, service accounts …); pods are not run by anybody. Methods may be called from any thread, and wait.
    """

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self._flags = tuple(flags)
        self._start(None)

    def _start(self, like: Server | None) -> None:
        self._forks: list[Server] = []
        self._client: Client | None = None
        self._clients: list[Client] = []
        self._others: list[Any] = []
        self._closed = False
        self.directory = Path(tempfile.mkdtemp(prefix="tetrapod-"))
        """Certificates, kubeconfig and tokens; goes with the server."""
        self.token: str = like.token if like is not None else secrets.token_urlsafe(24)
        """A bearer token of system:masters."""
        if like is not None:
            shutil.copytree(like.directory / "pki", self.directory / "pki")
        self._loop = LoopThread("tetrapod")
        try:
            self._counted = self._started(like)
            self._beginning = self.snapshot()
        except BaseException:
            self._loop.close()
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def _started(self, like: Server | None) -> Counted:
        tokens = self.directory / "tokens.csv"
        tokens.touch(0o600)
        tokens.write_text(f'{self.token},tetrapod-testing,tetrapod-testing,"system:masters"\n')
        for attempt in range(_ATTEMPTS):
            options = _options(self.directory, tokens, self._flags)
            try:
                store = like._loop.call(like._server.copy()) if like is not None else None
                return self._loop.call(_running(options, store))
            except OSError:
                if attempt == _ATTEMPTS - 1:  # somebody else took the port each time
                    raise
        raise AssertionError

    @property
    def _server(self) -> Counted:
        self._must_be_open()
        return self._counted

    def _must_be_open(self) -> None:
        if self._closed:
            raise RuntimeError("this server is closed")

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def ca(self) -> Path:
        """The CA of the server's certificate."""
        return self._server.pki.ca

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of an administrator, by certificate."""
        return self.directory / "kubeconfig"

    @property
    def client(self) -> Client:
        """A plain client of an administrator. Not for several threads at once: each makes its own by `connect`."""
        if self._client is None:
            self._client = self.connect()
        return self._client

    def connect(self, token: str = "") -> Client:
        """Another client, of whoever the token is of."""
        from tetrapod.testing.client import Client

        client = Client(self.url, self.ca, token or self.token)
        self._clients.append(client)
        return client

    def kubernetes_client(self) -> Any:
        """An `ApiClient` of the official `kubernetes` package, which must be installed. Closed with the server."""
        from kubernetes import client  # type: ignore[import-untyped, unused-ignore]

        configuration = client.Configuration(host=self.url)
        configuration.ssl_ca_cert = str(self.ca)
        configuration.api_key = {"authorization": f"Bearer {self.token}"}
        api = client.ApiClient(configuration)
        self._others.append(api)
        return api

    def apply(self, manifests: str | Path | dict[str, Any] | Iterable[Any], *, namespace: str = "default") -> list[dict[str, Any]]:
        """Server-side apply of manifests: objects, lists of them, YAML text, files or directories. Returns them as stored.

        Definitions of custom resources are served when this returns.
        """
        from tetrapod.testing.manifests import apply

        return apply(self.client, manifests, namespace)

    def snapshot(self) -> State:
        """What is stored now, once controllers have had their say."""
        return State(self._loop.call(self._server.snapshot()))

    def reset(self, state: State | None = None) -> None:
        """Go back to a state; without one, to that at the start. It is a write: open watches see deletions, additions and changes, and

        resource versions go on. End what writes before: an operator that runs on may write what it had in mind a moment ago.
        """
        target = state if state is not None else self._beginning
        if not self._loop.call(self._server.go_back(target._snapshot)):
            raise RuntimeError("somebody keeps writing while the state is reset; end operators before")

    def settle(self) -> None:
        """Wait until controllers have done what follows from what was written. Work that they do later on purpose is not waited for."""
        self._loop.call(self._server.settled())

    def fork(self) -> Server:
        """Another server that begins with all of this one's state, by the same certificates and token; closed with this one."""
        self._must_be_open()
        fork = Server.__new__(Server)
        fork._flags = self._flags
        fork._start(self)
        self._forks.append(fork)
        return fork

    def close_forks(self) -> None:
        """Close those made since, and theirs."""
        while self._forks:
            self._forks.pop().close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.close_forks()
        self._client = None
        for client in self._clients:
            client.close()
        for api in self._others:
            api.close()
            api.rest_client.pool_manager.clear()
        try:
            self._loop.call(self._counted.stop())
        finally:
            self._loop.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _options(directory: Path, tokens: Path, flags: Sequence[str]) -> Options:
    from tetrapod.cli.flags import parsed

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = [f"--data-dir={directory}", f"--token-auth-file={tokens}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
    options = parsed("u", [*own, "--collection-delay=0", *flags])
    if options.data_dir != directory or options.etcd_servers:
        raise ValueError("a test's server keeps its objects in memory: --data-dir and --etcd-servers are for `tetrapod up`")
    return options


async def _running(options: Options, store: SqliteBackend | None) -> Counted:
    from dataclasses import replace

    from tetrapod.generic.storage.sqlite.backend import SqliteBackend
    from tetrapod.testing.counted import Counted

    server = Counted(replace(options, shutdown_grace=0.0), store or SqliteBackend())
    try:
        await server.start()
    except BaseException:
        await server.stop()
        raise
    return server
