"""Tests of the time that a client's request waits for the store."""

from __future__ import annotations

import asyncio

from tetrapod.generic.storage.latency import STORE, MeasuredStore, add_store_latency, context_without_request


async def read() -> None:
    add_store_latency(1.0)


async def test_requests_of_background_tasks_are_not_counted_for_the_request_that_started_them() -> None:
    layers: dict[str, float] = {}
    with MeasuredStore(layers):
        await asyncio.create_task(read(), context=context_without_request())
        assert not layers
        await asyncio.create_task(read())
    assert layers == {STORE: 1.0}
