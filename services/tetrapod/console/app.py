"""The web application of the console."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.resources import files
from pathlib import Path
from typing import Final

import orjson
from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tetrapod.console.feed import Feed
from tetrapod.console.reads import ReadError, Reads, checked_path
from tetrapod.console.trace_view import page_of_answer, page_of_error
from tetrapod.console.waterfall import content_security_policy, style_sheet

STATIC: Final = Path(str(files("tetrapod.console") / "static"))


class EventStream(StreamingResponse):
    """The states of a feed as server-sent events, until the client disconnects.

    `fastapi.sse` is not used: with 0.165, a client that disconnects at the wrong moment causes an error in the log.
    """

    media_type = "text/event-stream"

    def __init__(self, feed: Feed) -> None:
        self._events = _events(feed)
        super().__init__(self._events)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, and end the subscription."""
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


async def _events(feed: Feed) -> AsyncGenerator[bytes, None]:
    async with aclosing(feed.subscribe()) as states:
        async for news in states:
            # One write for all: asyncio warns of several to a connection that was just lost.
            yield b"".join(
                b"event: %s\ndata: %s\n\n" % (state.panel.encode(), orjson.dumps(state.document)) for state in news
            )


def application(reads: Reads, feed: Feed) -> FastAPI:
    """Return the application, which must be served behind a Guard."""
    app = FastAPI(title="Tetrapod console", openapi_url=None, docs_url=None, redoc_url=None)
    policy = f"{content_security_policy(style_sheet())}; frame-ancestors 'self'"

    @app.get("/", response_class=FileResponse)
    async def index() -> Path:
        return STATIC / "index.html"

    @app.get("/settings")
    async def settings() -> dict[str, float | str]:
        return {"interval": feed.interval, "server": reads.url}

    @app.get("/events")
    async def events() -> Response:
        return EventStream(feed)

    @app.get("/trace")
    async def trace(path: str) -> Response:
        try:
            target = checked_path(path)
        except ValueError as error:
            status, page = 400, page_of_error(path, str(error))
        else:
            try:
                answer = await reads.fetch(f"{target}{'&' if '?' in target else '?'}trace=1")
            except ReadError as error:
                status, page = 502, page_of_error(path, f"The server cannot be reached: {error}")
            else:
                status, page = 200, page_of_answer(path, answer)
        return HTMLResponse(page, status, {"content-security-policy": policy})

    app.mount("/static", StaticFiles(directory=STATIC))
    return app
