"""Serves the console on the loopback address until it is interrupted."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Mapping
from types import FrameType

import uvicorn

from tetrapod.console.app import application
from tetrapod.console.feed import Feed
from tetrapod.console.guard import Guard
from tetrapod.console.panels import panels
from tetrapod.console.reads import Reads
from tetrapod.generic.webhook.kubeconfig import Target


class _Server(uvicorn.Server):
    """A server that ends the event streams when it is interrupted. uvicorn alone would wait for them."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self._feed = feed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Future[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._close_feed)

    def _close_feed(self) -> None:
        self._closing = asyncio.ensure_future(self._feed.close())


def listen(port: int) -> socket.socket:
    """Return a listening socket on the loopback address. Raises OSError if the port is in use.

    Args:
        port: the port; 0 for a free one.
    """
    listener = socket.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)  # so that a browser can connect as soon as it knows the address
    except OSError:
        listener.close()
        raise
    return listener


def serve(
    target: Target, sources: Mapping[str, str], listener: socket.socket, interval: float, ready: Callable[[str], None]
) -> None:
    """Serve the console until SIGINT or SIGTERM.

    Args:
        target: the API server, with the credentials for it.
        sources: the processes whose metrics are added up, as for `panels`.
        listener: the socket of `listen`.
        interval: the seconds between two reads of a panel.
        ready: called with the address that opens the console.
    """
    token = secrets.token_urlsafe(24)
    port = listener.getsockname()[1]

    async def run() -> None:
        reads = Reads(target)
        feed = Feed(panels(reads, sources), interval)
        config = uvicorn.Config(
            Guard(application(reads, feed), port, token),
            access_log=False,  # it would contain the token
            log_level="warning",
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        ready(f"http://127.0.0.1:{port}/?token={token}")
        try:
            await _Server(config, feed).serve([listener])
        finally:
            await reads.close()

    asyncio.run(run())
