"""Tests of leases that many short-lived objects share."""

from __future__ import annotations

from itertools import count
from typing import Any, cast

from tetrapod.generic.storage.leases import LeaseManager


class Granting:
    def __init__(self) -> None:
        self.granted: list[int] = []

    async def grant_lease(self, ttl: int) -> int:
        self.granted.append(ttl)
        return len(self.granted)


async def test_a_lease_is_reused_while_it_lasts_long_enough_and_not_much_too_long() -> None:
    backend, now = Granting(), 0.0
    leases = LeaseManager(cast(Any, backend), lambda: now)
    assert await leases.lease(3600) == 1
    assert backend.granted == [3660]
    now = 59.0
    assert await leases.lease(3600) == 1
    now = 61.0
    assert await leases.lease(3600) == 2
    assert await leases.lease(600) == 3
    leases.forget()
    assert await leases.lease(600) == 4


async def test_a_lease_carries_at_most_a_thousand_objects() -> None:
    backend, ticks = Granting(), count()
    leases = LeaseManager(cast(Any, backend), lambda: next(ticks) / 1000)
    assert [await leases.lease(3600) for _ in range(1001)][-2:] == [1, 2]
