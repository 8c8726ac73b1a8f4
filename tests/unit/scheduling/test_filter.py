"""Tests of fair scheduling behind the aggregator: a user with many requests does not delay others, although no seats
are counted.
"""

from __future__ import annotations

import asyncio

import pytest

from tetrapod.generic.filters.fair_scheduling import kind_of_user, with_fair_scheduling
from tetrapod.generic.http.request import ForwardingWriter, Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.scheduling.scheduler import FairScheduler
from tetrapod.machinery.requestinfo import RequestInfo


class Served:
    """A handler for which every request costs the loop a millisecond, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []
        scheduler = FairScheduler(clock=lambda: self.now, now=lambda: self.now, group_of=kind_of_user)
        self.serve = with_fair_scheduling(self._handle, scheduler)

    async def _handle(self, request: Request) -> Response:
        self.now += 0.001
        self.order.append(dict(request.headers)[b"x-remote-user"].decode())
        if request.path != "/streamed":
            return Response(200, [])
        return StreamResponse(200, [], run=self._pieces)

    async def _pieces(self, writer: StreamWriter) -> None:
        for _ in range(10):
            writer.write(b"piece")
            await writer.drain()

    def ask(self, user: str, verb: str = "get", path: str = "/") -> asyncio.Task[Response]:
        request = Request("GET", path, headers=[(b"accept", b"*/*"), (b"x-remote-user", user.encode())])
        request.info = RequestInfo(is_resource_request=True, path=path, verb=verb)

        async def asked() -> Response:
            return await self.serve(request)

        return asyncio.create_task(asked())


@pytest.mark.parametrize("verb", ["get", "watch"])
async def test_the_last_user_is_not_served_last(verb: str) -> None:
    served = Served()
    flood = [served.ask("flood") for _ in range(100)]
    last = served.ask("quiet", verb)
    await asyncio.gather(*flood, last)
    assert served.order.index("quiet") < 15
    assert len(served.order) == 101


async def test_many_kubelets_do_not_starve_the_controller_manager() -> None:
    served = Served()
    kubelets = [served.ask(f"system:node:{number}") for number in range(100)]
    manager = [served.ask("system:kube-controller-manager") for _ in range(30)]
    await asyncio.gather(*kubelets, *manager)
    assert served.order[30:70].count("system:kube-controller-manager") >= 15


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        (b"system:node:a", "system:node"),
        (b"system:serviceaccount:default:a", "system:serviceaccount"),
        (b"system:kube-scheduler", "system:kube-scheduler"),
        (b"oidc:a", ""),
        (b"\xff", ""),
        (b"", ""),
    ],
)
def test_kinds_of_users(user: bytes, kind: str) -> None:
    assert kind_of_user(user) == kind


async def test_parts_of_a_long_response_are_scheduled_fairly() -> None:
    served = Served()
    order: list[str] = []

    class Noted(ForwardingWriter):
        def __init__(self, name: str) -> None:
            self.name = name

        def write(self, data: bytes) -> None:
            order.append(self.name)
            served.now += 0.001

        async def drain(self) -> None:
            return

    async def streams(user: str) -> None:
        response = await served.ask(user, "list", "/streamed")
        assert isinstance(response, StreamResponse)
        await response.run(Noted(user))

    many = [asyncio.create_task(streams("flood")) for _ in range(20)]
    while order.count("flood") < 20:  # noqa: ASYNC110  it is steps of the loop that are counted
        await asyncio.sleep(0)
    begun = len(order)
    await streams("quiet")
    assert len(order) - begun <= 60  # of 200
    await asyncio.gather(*many)
    assert order.count("flood") == 200
