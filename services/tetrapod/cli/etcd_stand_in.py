"""`tetrapod-etcd`: replaces etcd for programs that start an etcd for their API server, such as envtest.

It accepts etcd's command line, responds to `/health` and `/version`, and tells `tetrapod-kube-apiserver` to store
objects in a SQLite file in its data directory, which exists as long as etcd's would. It does not implement etcd's
protocol: use etcd for any other API server. It imports few modules, because a test suite starts it twice (first with
`--help`).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

DATABASE_PATH: Final = "/tetrapod/database"
FILE: Final = "tetrapod.db"
_HELP: Final = (
    """Usage:
  tetrapod-etcd [flags]

Replaces etcd for tetrapod-kube-apiserver, which stores its objects in the data directory.

  --data-dir 'default.etcd'                          Path to the data directory.
  --listen-client-urls 'http://localhost:2379'       List of URLs to listen on for client traffic. """
    """Only the first is used.
  --unsafe-no-fsync                                  Always on: objects are lost in a power failure.

Other flags of etcd are accepted and ignored.
"""
)


def database_of(url: str, timeout: float) -> Path | None:
    """Return the path of the SQLite file of the `tetrapod-etcd` that listens at a URL.

    Args:
        url: the URL.
        timeout: the seconds to wait for a response.

    Returns:
        None if a real etcd listens there, or if the URL cannot be reached.
    """
    parts = urlsplit(url)
    try:
        with socket.create_connection(
            (parts.hostname or "localhost", parts.port or 2379), timeout=timeout
        ) as connection:
            connection.sendall(f"GET {DATABASE_PATH} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode("utf-8", "replace")
    except OSError:
        return None
    head, _, body = answer.partition("\r\n\r\n")
    return Path(body) if head.split(" ")[1:2] == ["200"] and body.endswith(FILE) else None


def main() -> None:
    """Run the console script `tetrapod-etcd` until a signal ends the process."""
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        print(_HELP, end="")
        return
    if "--version" in arguments:
        print("etcd Version: 3.6.0\nIn its place: tetrapod-etcd")
        return
    directory = Path(_flag(arguments, "data-dir") or "default.etcd").absolute()
    url = urlsplit((_flag(arguments, "listen-client-urls") or "http://localhost:2379").split(",")[0])
    if url.scheme != "http" or not url.hostname:
        sys.exit(f"tetrapod-etcd: --listen-client-urls: only http://HOST:PORT can be had, not {url.geturl()!r}")
    if (directory / "member").exists():
        sys.exit(f"tetrapod-etcd: {directory} has data of a real etcd; name another --data-dir, or use etcd")
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    try:
        listener = socket.create_server((url.hostname, url.port or 2379), backlog=64)
    except OSError as error:
        sys.exit(f"tetrapod-etcd: cannot listen at {url.netloc}: {error.strerror}")
    serve(listener, directory / FILE)


def serve(listener: socket.socket, database: Path) -> None:
    """Respond to etcd's health and version requests, one connection at a time, until the process ends.

    A request for DATABASE_PATH gets the path of the SQLite file, `database`.
    """
    responses = {
        "/health": b'{"health":"true","reason":""}',
        "/readyz": b"ok\n",
        "/livez": b"ok\n",
        "/version": b'{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}',
        DATABASE_PATH: str(database).encode(),
    }
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            try:
                words = connection.recv(4096).split(b" ", 2)
                body = responses.get(words[1].decode("latin-1").partition("?")[0]) if len(words) == 3 else None
                status = b"404 Not Found" if body is None else b"200 OK"
                body = body or b"404 page not found\n"
                head = b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                connection.sendall(head % (status, len(body)) + body)
            except OSError:
                continue  # the client is gone


def _flag(arguments: list[str], name: str) -> str:
    """Return the last value of a flag, written as --name=value, -name=value or --name value; "" if it is missing."""
    last = ""
    for index, argument in enumerate(arguments):
        dashed, equals, value = argument.partition("=")
        if dashed in (f"--{name}", f"-{name}"):
            last = value if equals else "".join(arguments[index + 1 : index + 2])
    return last
