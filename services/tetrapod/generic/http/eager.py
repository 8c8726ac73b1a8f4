"""`started`: a task whose first part runs at once, up to where it waits for something: Python 3.12's `eager_start`, for 3.11 too.

A request that need not wait for anything is then answered in the step of the event loop in which it arrived, not behind whatever
else is due in the next one. That is for a crowd: with nobody in the way the requests of a step are better begun together in the next,
which makes fewer and larger writes (measured, of a GET that is passed on: a quarter to a third of its CPU).
"""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any


def started(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Inside another task, whose step is not to be held up, `work` begins in the next step of the loop as ever."""
    if asyncio.current_task(loop) is not None:
        return loop.create_task(work)
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    begun = _begun(work)
    context = copy_context()
    task = loop.create_task(begun, context=context)
    asyncio._enter_task(loop, task)
    try:
        context.run(next, begun, None)
    finally:
        asyncio._leave_task(loop, task)
    return task


@types.coroutine
def _begun(work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
    """`started` runs it up to its first `yield`; from there it is the task's, which is handed what `work` waits for."""
    try:
        awaited = work.send(None)
    except StopIteration:
        return
    except BaseException:
        yield
        raise
    handed = False
    while True:
        try:
            yield awaited if handed else None
        except BaseException as error:
            if not handed and awaited is not None:  # cancelled before the task's first step: it knows nothing of what is waited for
                awaited.cancel()
            try:
                awaited = work.throw(error)
            except StopIteration:
                return
            handed = True
        else:
            if handed:
                yield from work
                return
            handed = True
