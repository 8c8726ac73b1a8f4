"""`start_eagerly`: creates a task whose first part runs at once, as Python 3.12's `eager_start` does.

A request that need not wait for anything is then answered in the step of the event loop in which it arrived, before the
work of the next step. This helps while requests compete for the loop. Otherwise the requests of a step are better
started together in the next one, which makes fewer and larger writes: a quarter to a third of the CPU time of a
forwarded GET.
"""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any


def start_eagerly(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Create a task for `work`, run it up to its first wait, and return it.

    If the caller itself runs in a task, the new task starts in the next iteration of the event loop instead, so that
    the caller's step does not become longer.
    """
    if asyncio.current_task(loop) is not None:
        return loop.create_task(work)
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    begun = _run_first_part(work)
    context = copy_context()
    task = loop.create_task(begun, context=context)
    asyncio._enter_task(loop, task)
    try:
        context.run(next, begun, None)
    finally:
        asyncio._leave_task(loop, task)
    return task


@types.coroutine
def _run_first_part(work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
    """Wrap `work` in a generator for a task that is started by hand.

    When first resumed, the generator runs `work` up to its first wait. When resumed again, by the task, it yields the
    awaited future to the task and runs the rest.
    """
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
            if not handed and awaited is not None:
                # Cancelled before the task's first step: the task does not know the future.
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
