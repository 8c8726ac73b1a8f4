"""Leader election of core's controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from integration.core.conftest import Core
from tetrapod.generic.lifecycle import Lifecycle


class _Candidate:
    """A leader election that never makes this replica the leader."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        self.began.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize(("controllers", "elected"), [(("*",), True), (("-*",), False)])
async def test_a_replica_without_controllers_takes_no_part_in_the_election(
    core: Core, controllers: tuple[str, ...], elected: bool
) -> None:
    candidate, lifecycle = _Candidate(), Lifecycle()
    core.service._config = replace(core.service._config, controllers=controllers)
    core.service._leadership = candidate
    core.service.register(lifecycle)
    await lifecycle.hooks["start-system-namespaces-controller"]()
    await lifecycle.hooks["generic-apiserver-start-informers"]()
    await asyncio.sleep(0)
    assert candidate.began.is_set() is elected
    await lifecycle.stop()
