"""Tests of `Failure` and `result_of`: each caller gets its own exception, with the content of the first one."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from tetrapod.generic.rpc.errors import Code, RpcError
from tetrapod.machinery.failure import Failure, result_of
from tetrapod.machinery.status import StatusError, bad_request


class Marker:
    """An object that a frame refers to."""


def kept() -> tuple[Failure[StatusError], weakref.ref[Marker]]:
    marker = Marker()
    try:
        raise bad_request("no")
    except StatusError as error:
        return Failure(error), weakref.ref(marker)


def test_a_failure_keeps_no_frame_alive() -> None:
    gc.disable()
    try:
        failure, marker = kept()
        assert marker() is None
    finally:
        gc.enable()
    assert failure.error().__traceback__ is None


def test_each_exception_of_a_failure_is_new_and_equal_in_content() -> None:
    error = bad_request("no")
    failure = Failure(error)
    first, second = failure.error(), failure.error()
    first.headers.append((b"a", b"b"))
    assert first is not second
    assert (type(second), str(second), second.code, second.headers) == (StatusError, "no", 400, [])


def test_attributes_of_an_exception_with_other_arguments_are_kept() -> None:
    error = Failure(RpcError(Code.UNAVAILABLE, "away")).error()
    assert (error.code, error.details, str(error)) == (Code.UNAVAILABLE, "away", "UNAVAILABLE: away")


async def test_callers_of_a_shared_task_get_exceptions_of_their_own() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise bad_request("no")

    task = asyncio.create_task(fail())
    first, second = await asyncio.gather(result_of(task), result_of(task), return_exceptions=True)
    assert isinstance(first, StatusError) and isinstance(second, StatusError)
    assert first is not second and str(first) == str(second) == "no"


async def test_a_cancelled_caller_does_not_cancel_a_shared_task() -> None:
    release = asyncio.Event()

    async def work() -> str:
        await release.wait()
        return "done"

    task = asyncio.create_task(work())
    cancelled, other = asyncio.create_task(result_of(task)), asyncio.create_task(result_of(task))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    release.set()
    assert await other == "done"
