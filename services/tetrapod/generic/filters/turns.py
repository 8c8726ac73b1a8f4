"""Users take turns on the event loop, where no priority and fairness sees to that: in what stands behind the front door, for one.

How many requests are under way the front door has decided by then; but those of a user with a hundred of them arrive together, and would
all be served before the next one's. system:masters and long-running requests other than watches wait for nobody, as at the front.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable

from tetrapod.generic.authentication.user import SYSTEM_MASTERS
from tetrapod.generic.filters.long_running import is_long_running
from tetrapod.generic.flowcontrol.turns import Turns
from tetrapod.generic.request import ForwardingWriter, Handler, Request, Response, StreamResponse, StreamWriter


def with_turns(handler: Handler, turns: Turns) -> Handler:
    async def in_turn(request: Request) -> Response:
        user, info = request.user, request.info
        watches = info is not None and info.verb == "watch"
        if SYSTEM_MASTERS in user.groups or (not watches and is_long_running(info)):
            return await handler(request)
        if not turns.taken(user.name):
            await turns.wait(user.name)
        response = await turns.each_step(user.name, handler(request))
        if not watches and isinstance(response, StreamResponse):
            response.run = stream_in_turn(response.run, turns, user.name)
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
