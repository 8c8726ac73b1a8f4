"""Tests that a connection that cannot be established leaves nothing to the cyclic garbage collector."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest
import uvloop

from tetrapod.generic.proxy import BackendError
from tetrapod.generic.proxy.pool import BackendPool


async def _fetch(port: int) -> None:
    pool = BackendPool()
    with pytest.raises(BackendError, match="connection refused"):
        await pool.fetch("GET", f"http://127.0.0.1:{port}/")
    await pool.close()


def test_a_rejected_connection_leaves_no_reference_cycle() -> None:
    with socket.socket() as bound, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        bound.bind(("127.0.0.1", 0))  # bound, but not listening
        port = bound.getsockname()[1]
        runner.run(_fetch(port))
        gc.collect()
        gc.disable()
        try:
            runner.run(_fetch(port))
            assert gc.collect() < 10  # a connection with its parser has 19 objects; pytest.raises leaves a few
        finally:
            gc.enable()
