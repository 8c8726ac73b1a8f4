"""Tests of the log of `WorkQueue`."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tetrapod.generic.client.workqueue import ExpectedFailure, WorkQueue

ATTEMPTS = 6


@pytest.mark.parametrize(("error", "levels"), [(RuntimeError, {"DEBUG", "WARNING"}), (ExpectedFailure, {"DEBUG"})])
async def test_only_unexpected_failures_are_warnings(
    error: type[Exception], levels: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    attempts = 0
    done = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < ATTEMPTS:
            raise error(f"attempt {attempts}")
        done.set()

    queue: WorkQueue[str] = WorkQueue("test-of-the-log", work)
    queue.add("key")
    with caplog.at_level(logging.DEBUG, "tetrapod.generic.client.workqueue"):
        worker = asyncio.create_task(queue.run())
        await asyncio.wait_for(done.wait(), 30)
        worker.cancel()
    records = [record for record in caplog.records if "attempt" in record.getMessage()]
    assert len(records) == ATTEMPTS - 1
    assert {record.levelname for record in records} == levels
