"""`tetrapod console` as a child process."""

from __future__ import annotations

import base64
import http.client
import json
import os
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

from support.server import command, end, environment

INTERVAL = "0.2"


@dataclass
class Console:
    """A running console.

    Attributes:
        address: the printed address, with the token.
    """

    process: subprocess.Popen[str]
    address: str
    errors: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.address).query)["token"][0]

    @property
    def cookie(self) -> str:
        return f"tetrapod-console-{self.port}={self.token}"

    def ask(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, *, authenticated: bool = True
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers (in lower case) and body."""
        with (
            closing(self.connect(path, method, headers, authenticated=authenticated)) as connection,
            connection.getresponse() as response,
        ):
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()

    def connect(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, *, authenticated: bool = True
    ) -> http.client.HTTPConnection:
        """Send a request and return its connection."""
        sent = {"host": f"127.0.0.1:{self.port}", **(headers or {})}
        if authenticated:
            sent["cookie"] = self.cookie
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers=sent)
        return connection

    def states(self) -> Generator[tuple[str, dict[str, Any]], None, None]:
        """Yield name and state of each panel as they arrive."""
        with closing(self.connect("/events")) as connection, connection.getresponse() as response:
            assert response.status == 200
            panel = ""
            for raw in response:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    panel = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield panel, json.loads(line.removeprefix("data: "))


@contextmanager
def running_console(kubeconfig: Path, *flags: str, program: str = "") -> Iterator[Console]:
    """Run the console for the server of a kubeconfig.

    Args:
        program: the path of an installed `tetrapod`; "" for that of this checkout.
    """
    arguments = ("console", "--kubeconfig", str(kubeconfig), "--interval", INTERVAL, *flags)
    argv, variables = command(*arguments), environment()
    if program:
        argv = [program, *arguments]
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables, text=True)
    assert process.stdout is not None and process.stderr is not None
    lines: Queue[str] = Queue()
    errors: list[str] = []
    pairs: list[tuple[IO[str], Callable[[str], None]]] = [(process.stdout, lines.put), (process.stderr, errors.append)]
    readers = [threading.Thread(target=_read, args=pair, daemon=True) for pair in pairs]
    for reader in readers:
        reader.start()
    try:
        try:
            first, address = lines.get(timeout=60), lines.get(timeout=60)
        except Empty:
            raise AssertionError(f"the console did not start: {''.join(errors)}") from None
        assert first.startswith("Console of https://"), first
        yield Console(process, address.strip(), errors)
    finally:
        end(process)
        for reader in readers:
            reader.join(10)
        process.stdout.close()
        process.stderr.close()


def _read(stream: IO[str], keep: Callable[[str], None]) -> None:
    for line in stream:
        keep(line)


def kubeconfig_of(file: Path, url: str, ca: Path, token: str) -> Path:
    """Write the kubeconfig of a user with a token."""
    authority = base64.b64encode(ca.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(config))
    return file
