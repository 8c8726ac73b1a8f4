"""Users take turns on the event loop of what stands behind the front door.

How many requests are under way the front door has decided by then; but those of a user with a hundred of them arrive together, and would
all be looked at before the next one's. So this stands before every other filter, and takes the front's word for who asks: whoever else can
send that header gains no more by it than a place of his own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from tetrapod.generic.flowcontrol.turns import Turns
from tetrapod.generic.request import ForwardingWriter, Handler, Request, Response, StreamResponse, StreamWriter

_USER: Final = b"x-remote-user"


def with_turns(handler: Handler, turns: Turns) -> Handler:
    async def in_turn(request: Request) -> Response:
        user = next((value for name, value in request.headers if name == _USER), b"")
        if not turns.taken(user):
            await turns.wait(user)
        response = await turns.each_step(user, handler(request))
        if isinstance(response, StreamResponse) and (request.info is None or request.info.verb != "watch"):
            response.run = stream_in_turn(response.run, turns, user)
        return response

    return in_turn


def stream_in_turn(
    run: Callable[[StreamWriter], Awaitable[None]], turns: Turns, flow: Hashable
) -> Callable[[StreamWriter], Awaitable[None]]:
    """The pieces of a long answer each wait for the flow's turn."""

    async def run_in_turn(writer: StreamWriter) -> None:
        await run(_InTurn(writer, turns, flow))

    return run_in_turn


class _InTurn(ForwardingWriter):
    def __init__(self, writer: StreamWriter, turns: Turns, flow: Hashable) -> None:
        super().__init__(writer)
        self.write = writer.write
        self._turns, self._flow = turns, flow

    async def drain(self) -> None:
        await self._writer.drain()
        if not self._turns.taken(self._flow):
            await self._turns.wait(self._flow)
