"""Schedules the requests of users fairly in a service behind the aggregator.

The aggregator limits the requests in flight. However, a user's hundred requests may arrive together, and would all be
processed before the next user's. This filter therefore precedes all others, and uses the user name of the identity
header unverified: a client that forges it only gets a queue of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final

from tetrapod.generic.http.request import ForwardingWriter, Handler, Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.scheduling.scheduler import FairScheduler
from tetrapod.machinery.user import is_service

_USER: Final = b"x-remote-user"


def with_fair_scheduling(handler: Handler, scheduler: FairScheduler) -> Handler:
    """Return a handler that starts requests, and writes pieces of long responses, in an order that is fair to users."""

    async def fair_scheduling(request: Request) -> Response:
        user = b""
        for name, value in request.headers:
            if name == _USER:
                user = value
                break
        if not scheduler.try_start(user):
            await scheduler.wait(user)
        response = await scheduler.run(user, handler(request))
        if isinstance(response, StreamResponse) and (request.info is None or request.info.verb != "watch"):
            response.run = scheduled_stream(response.run, scheduler, user)
        return response

    return fair_scheduling


def is_of_service(flow: Any) -> bool:
    """Return whether a flow of `with_fair_scheduling` is that of a service, by the user name, which is not verified."""
    return is_service(flow.decode("latin-1"))


def kind_of_user(flow: Any) -> str:
    """Return the group of a flow of `with_fair_scheduling`, such as system:node for all kubelets.

    Priority levels tell the same kinds of users apart: the aggregator knows those, and a service behind it does not.
    """
    first, _, rest = flow.decode("latin-1").partition(":")
    return f"{first}:{rest.partition(':')[0]}" if first == "system" else ""


def scheduled_stream(
    run: Callable[[StreamWriter], Awaitable[None]], scheduler: FairScheduler, flow: Hashable
) -> Callable[[StreamWriter], Awaitable[None]]:
    """Return a stream that waits for the scheduler after each `drain` of `run`, as work of `flow`.

    Args:
        run: writes the body of a long response.
        scheduler: the scheduler.
        flow: the key of the queue, such as the user.
    """

    async def run_scheduled(writer: StreamWriter) -> None:
        await run(_ScheduledWriter(writer, scheduler, flow))

    return run_scheduled


class _ScheduledWriter(ForwardingWriter):
    """A StreamWriter whose `drain` also waits until the scheduler lets the flow continue."""

    def __init__(self, writer: StreamWriter, scheduler: FairScheduler, flow: Hashable) -> None:
        super().__init__(writer)
        self.write = writer.write
        self._scheduler, self._flow = scheduler, flow
        self._resumed = scheduler.now()

    async def drain(self) -> None:
        self._scheduler.charge(self._flow, self._resumed)
        await self._writer.drain()
        if not self._scheduler.try_start(self._flow):
            await self._scheduler.wait(self._flow)
        self._resumed = self._scheduler.now()
