"""`Pace`: how many requests of one flow are sent on at the same time while others want something too.

Behind a front door stand processes that share its CPUs: what a flood has under way there takes them from everybody, whatever turns are
taken inside each. In a single process writes are under way together, and so is what follows their commit. So in company a flow has only a
few *young* requests under way, those that were sent on in the last few milliseconds and are not answered: enough to keep a pipeline busy,
and fewer where CPUs are scarce. One that takes longer than its work would waits for something else than a CPU, and counts no more. Who is
alone is not held up.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from tetrapod.generic.request import Response, StreamResponse, StreamWriter

ROOM: Final = 8
"""For the young ones of a flow, by their weights."""
SCARCE: Final = 2
"""The same where there are not CPUs for all who want one."""
LIGHT, HEAVY, BULKY = 1, 2, 4
"""What a request weighs: one for a single object, one that changes it, one for many objects."""
YOUNG: Final = 0.01
"""Seconds for which a request is young, for each part of its weight."""


def weight_of(verb: str) -> int:
    if verb == "get":
        return LIGHT
    return BULKY if verb in ("list", "watch", "deletecollection") else HEAVY


def weight_here(verb: str) -> int:
    """The same where nothing is sent on: 0, for a read, is not held up at all."""
    return 0 if verb in ("get", "list", "watch") else LIGHT


class Sent:
    """A request that is under way since then."""

    __slots__ = ("flow", "since", "weight")

    def __init__(self, flow: Hashable, since: float, weight: int) -> None:
        self.flow = flow
        self.since = since
        self.weight = weight


_UNCOUNTED: Final = Sent(None, 0.0, 0)


class Pace:
    """`in_company`: is there anybody else; `pressed`: are CPUs scarce."""

    def __init__(self, in_company: Callable[[], bool], pressed: Callable[[], bool], now: Callable[[], float] = time.monotonic) -> None:
        self._in_company = in_company
        self._pressed = pressed
        self._now = now
        self._young: dict[Hashable, set[Sent]] = {}  # by flow
        self._waiting: dict[Hashable, deque[tuple[asyncio.Future[Sent], int]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, flow: Hashable, weight: int) -> Sent | None:
        """What `leave` wants; None: the request has to `wait`."""
        if not self._waiting and not self._in_company():
            self._young.clear()
            return _UNCOUNTED
        if flow in self._waiting or not self._fits(flow, weight):
            return None
        return self._sent(flow, weight)

    async def wait(self, flow: Hashable, weight: int) -> Sent:
        turn: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(flow, deque()).append((turn, weight))
        self._look_soon()
        return await turn

    def leave(self, sent: Sent) -> None:
        """The request is answered."""
        young = self._young.get(sent.flow)
        if young is not None and sent in young:
            young.remove(sent)
            if not young:
                del self._young[sent.flow]
            if sent.flow in self._waiting:
                self._wake(sent.flow)

    def leave_after(self, response: Response, sent: Sent) -> None:
        """The request is answered when `response` is; one that never ends is as soon as it begins."""
        if not isinstance(response, StreamResponse) or response.endless:
            self.leave(sent)
            return
        run = response.run

        async def run_and_leave(writer: StreamWriter) -> None:
            try:
                await run(writer)
            finally:
                self.leave(sent)

        response.run = run_and_leave

    def _sent(self, flow: Hashable, weight: int) -> Sent:
        sent = Sent(flow, self._now(), weight)
        self._young.setdefault(flow, set()).add(sent)
        return sent

    def _fits(self, flow: Hashable, weight: int) -> bool:
        young = self._young.get(flow)
        if not young:
            return True
        now = self._now()
        young -= {sent for sent in young if sent.since + sent.weight * YOUNG < now}
        room = SCARCE if self._pressed() else ROOM
        return not young or sum(sent.weight for sent in young) + weight <= room

    def _wake(self, flow: Hashable) -> None:
        waiting = self._waiting[flow]
        together = self._in_company()
        while waiting and (not together or self._fits(flow, waiting[0][1])):
            turn, weight = waiting.popleft()
            if not turn.done():  # else who waited has gone
                turn.set_result(self._sent(flow, weight))
        if not waiting:
            del self._waiting[flow]

    def _look_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(YOUNG / 2, self._look)

    def _look(self) -> None:
        """For what has grown old."""
        self._timer = None
        for flow in list(self._waiting):
            self._wake(flow)
        if self._waiting:
            self._look_soon()
