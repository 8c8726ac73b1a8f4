"""A complete API server in a thread of this process, with a storage in memory.

A separate process would have to import everything for each server, which takes some 90 MB, and would need a channel for
what is now a function call. Measurements are in docs/how-to/testing.md.
"""

from __future__ import annotations

import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tetrapod.testing.loop import LoopThread

if TYPE_CHECKING:
    from tetrapod.apps.options.options import Options
    from tetrapod.generic.admission.interface import Plugin
    from tetrapod.generic.aggregated import Kind
    from tetrapod.generic.aggregated.checks import Finding
    from tetrapod.generic.storage.sqlite.backend import SqliteBackend
    from tetrapod.generic.storage.sqlite.snapshots import Snapshot
    from tetrapod.testing.client import Client
    from tetrapod.testing.counted import Counted
    from tetrapod.testing.served import Served

_ATTEMPTS: Final = 5


class State:
    """The stored objects of a server at one moment, returned by `Server.snapshot`.

    It is opaque, and can be passed to `reset` of any server, repeatedly.
    """

    def __init__(self, snapshot: Snapshot, served: Mapping[str, Snapshot]) -> None:
        """Create the state; called by `Server.snapshot`.

        Args:
            snapshot: the objects of the server.
            served: the objects of its aggregated servers, by the name of the server.
        """
        self._snapshot = snapshot
        self._served = served

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._snapshot.entries)

    def __repr__(self) -> str:
        """Return the number of objects and the revision."""
        return f"<State of {len(self)} objects at revision {self._snapshot.revision}>"


class Server:
    """A running server, ready when it is constructed. Use it as a context manager, or call `close`.

    Controllers run as in a cluster (garbage collection, namespaces, service accounts and so on), but nothing runs pods.
    Methods may be called from any thread; they block. All methods except `close` and `close_forks` raise RuntimeError
    after `close`.
    """

    def __init__(self, flags: Sequence[str] = ()) -> None:
        """Start a server on a free port of 127.0.0.1, and wait until it is ready.

        Args:
            flags: flags of `tetrapod up`, except --data-dir and --etcd-servers.

        Raises:
            ValueError: a flag selects another storage.
        """
        self._flags = tuple(flags)
        self._start(None)

    def _start(self, source: Server | None) -> None:
        self._forks: list[Server] = []
        self._client: Client | None = None
        self._clients: list[Client] = []
        self._kubernetes_clients: list[Any] = []
        self._served: dict[str, Served] = {}
        self._closed = False
        self.directory = Path(tempfile.mkdtemp(prefix="tetrapod-"))
        """The directory with certificates, kubeconfig and tokens, deleted with the server."""
        self.token: str = source.token if source is not None else secrets.token_urlsafe(24)
        """A bearer token of a user in the group system:masters."""
        if source is not None:
            shutil.copytree(source.directory / "pki", self.directory / "pki")
        self._loop = LoopThread("tetrapod")
        try:
            self._counted = self._start_counted(source)
            self._initial_state = self.snapshot()
        except BaseException:
            self._loop.close()
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def _start_counted(self, source: Server | None) -> Counted:
        tokens = self.directory / "tokens.csv"
        tokens.touch(0o600)
        tokens.write_text(f'{self.token},tetrapod-testing,tetrapod-testing,"system:masters"\n', "utf-8")
        for attempt in range(_ATTEMPTS):
            options = _options(self.directory, tokens, self._flags)
            try:
                store = source._loop.call(source._server.copy()) if source is not None else None
                return self._loop.call(_running(options, store))
            except OSError:
                if attempt == _ATTEMPTS - 1:  # each time another process took the port
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
        """The base URL of the server."""
        return self._server.url

    @property
    def ca(self) -> Path:
        """The path of the file with the CA of the server certificate."""
        return self._server.pki.ca

    @property
    def kubeconfig(self) -> Path:
        """The path of a kubeconfig for an administrator, with a client certificate."""
        return self.directory / "kubeconfig"

    @property
    def client(self) -> Client:
        """A minimal client for an administrator, created at the first use.

        It belongs to one thread; other threads create their own by `connect`.
        """
        if self._client is None:
            self._client = self.connect()
        return self._client

    def connect(self, token: str = "") -> Client:
        """Return a new client, which is closed with the server.

        Args:
            token: the bearer token; "" for that of the administrator.
        """
        from tetrapod.testing.client import Client

        client = Client(self.url, self.ca, token or self.token)
        self._clients.append(client)
        return client

    def kubernetes_client(self) -> Any:
        """Return a new `ApiClient` of the official `kubernetes` package for an administrator.

        It is closed with the server.

        Raises:
            ImportError: the package is not installed.
        """
        from kubernetes import client  # type: ignore[import-untyped, unused-ignore]

        configuration = client.Configuration(host=self.url)
        configuration.ssl_ca_cert = str(self.ca)
        configuration.api_key = {"authorization": f"Bearer {self.token}"}
        api = client.ApiClient(configuration)
        self._kubernetes_clients.append(api)
        return api

    def apply(
        self, manifests: str | Path | dict[str, Any] | Iterable[Any], *, namespace: str = "default"
    ) -> list[dict[str, Any]]:
        """Apply manifests by server-side apply, namespaces and CustomResourceDefinitions first.

        CustomResourceDefinitions are served when this returns.

        Args:
            manifests: YAML text, a file, a directory, an object, a List, or an iterable of these.
            namespace: the namespace of objects that name none.

        Returns:
            The stored objects, in the order of the manifests.

        Raises:
            ApiError: the server rejected an object.
            LookupError: the kind of an object is not served.
            TimeoutError: a CustomResourceDefinition was not served within 20 seconds.
        """
        from tetrapod.testing.manifests import apply

        return apply(self.client, manifests, namespace)

    def serve(self, kinds: Sequence[Kind], *, name: str = "aggregated", admission: Sequence[Plugin] = ()) -> str:
        """Run an aggregated API server for these kinds, register it by APIServices, and wait until they are available.

        It runs in the thread of this server, stores its objects in memory, and is closed with this server. `reset`
        restores its objects too. Forks share it with this server.

        Args:
            kinds: the kinds to serve.
            name: the name of the server, and of its Service in the namespace `default`.
            admission: admission plugins that are called for each write to these kinds, in this order.

        Returns:
            The base URL of the aggregated server.

        Raises:
            ValueError: there is already a server with this name, or the schema of a kind is not structural.
            TimeoutError: an APIService was not available within 20 seconds.
        """
        from tetrapod.testing.served import Served, wait_available

        self._must_be_open()
        if name in self._served:
            raise ValueError(f"there is already an aggregated server with the name {name!r}")
        served = Served(kinds, name, self.kubeconfig, self.directory / "served" / name, admission)
        self._loop.call(served.start())
        self._served[name] = served
        registration = served.registration()
        self.apply(registration)
        wait_available(self.client, registration)
        return served.url

    def check(self, group_version: str, *, name: str = "aggregated") -> list[Finding]:
        """Check that an aggregated server meets the requirements of the aggregation layer (`tetrapod check-apiserver`).

        Args:
            group_version: the `group/version` to check.
            name: the name of a server that `serve` started.

        Returns:
            The requirements that it does not meet; [] if it meets all that apply.

        Raises:
            KeyError: no aggregated server has this name.
        """
        from tetrapod.generic.aggregated.check_client import CheckClient
        from tetrapod.generic.aggregated.checks import Subject, run_checks
        from tetrapod.generic.certificates.pki import Pki
        from tetrapod.machinery.gvk import GroupVersion

        certificate, key = Pki(self.directory / "pki").front_proxy_client
        subject = Subject(CheckClient(self._served[name].url, certificate, key), GroupVersion.parse(group_version))
        return [finding for finding in run_checks(subject) if finding.outcome == "fail"]

    def snapshot(self) -> State:
        """Wait until controllers are idle (at most 2 seconds), and return the current state."""
        snapshot = self._loop.call(self._server.snapshot())
        return State(snapshot, {name: self._loop.call(served.snapshot()) for name, served in self._served.items()})

    def reset(self, state: State | None = None) -> None:
        """Restore a state, by default the initial one.

        A reset is a write: open watches receive deletions, additions and changes, and resource versions continue. Stop
        clients that write first: an operator that keeps running may write an object that it read before the reset.

        Args:
            state: a state of any server; None for the state after the start.

        Raises:
            RuntimeError: a client or controller keeps writing.
        """
        target = state if state is not None else self._initial_state
        for name, served in self._served.items():
            self._loop.call(served.restore(target._served.get(name)))
        if not self._loop.call(self._server.restore(target._snapshot)):
            raise RuntimeError("a client keeps writing while the state is reset; stop it before the reset")

    def settle(self) -> None:
        """Wait until controllers have processed all writes. Return after 2 seconds even if they have not.

        Work that controllers delay on purpose is not awaited.
        """
        self._loop.call(self._server.settled())

    def fork(self) -> Server:
        """Start another server with a copy of the current state, and the same certificates and token.

        It is closed with this one.
        """
        self._must_be_open()
        fork = Server.__new__(Server)
        fork._flags = self._flags
        fork._start(self)
        self._forks.append(fork)
        return fork

    def close_forks(self) -> None:
        """Close all forks, and their forks."""
        while self._forks:
            self._forks.pop().close()

    def close(self) -> None:
        """Stop the server and its forks, and delete its directory. Does nothing if it is already closed."""
        if self._closed:
            return
        self._closed = True
        self.close_forks()
        self._client = None
        for client in self._clients:
            client.close()
        for api in self._kubernetes_clients:
            api.close()
            api.rest_client.pool_manager.clear()
        try:
            for served in self._served.values():
                self._loop.call(served.stop())
            self._loop.call(self._counted.stop())
        finally:
            self._loop.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the server."""
        self.close()


def _options(directory: Path, tokens: Path, flags: Sequence[str]) -> Options:
    from tetrapod.cli.flags import parse_options

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = [
        f"--data-dir={directory}",
        f"--token-auth-file={tokens}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
    ]
    options = parse_options("up", [*own, "--collection-delay=0", *flags])
    if options.data_dir != directory or options.etcd.servers:
        raise ValueError("a server for tests stores its objects in memory; --data-dir and --etcd-servers cannot be set")
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
