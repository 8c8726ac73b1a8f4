"""Deallocation of the objects of a large request, in a thread when the request has been served.

Python deallocates an object with all its parts at once. For a Pod of 20 MB that keeps the event loop from running for
a tenth of a second.
"""

from __future__ import annotations

import traceback
from typing import Any, Final

from tetrapod.generic.http.request import Request
from tetrapod.generic.registry.context import Context
from tetrapod.generic.scheduling.offload import in_thread
from tetrapod.machinery.freeing import free_large

STATE_KEY: Final = "large objects"
"""The key of the list of objects in `Request.state`, which is empty unless the request is large."""


def set_large(context: Context, request: Request, *, large: bool) -> None:
    """Set `context.large`, and make `context.discard` collect objects for `free`.

    If `context.large` is True, the request's objects are processed in threads, and `context.discard` collects objects
    that are not needed any more. `free` deallocates them when the request has been served.

    Args:
        context: the registry context of the request.
        request: the request, whose `state` holds the collected objects.
        large: whether the request body is large (`is_large`). `context.large` becomes True later if the stored object
            is large.
    """
    context.large = large
    context.discarded = request.state[STATE_KEY] = []


async def free(request: Request, error: BaseException | None = None) -> None:
    """Deallocate, in a thread, the objects that `context.discard` has collected. Objects in use elsewhere are kept.

    Args:
        request: the request that has been served.
        error: the exception that ended the request; None if it succeeded. The frames of its traceback are cleared,
            because they refer to the objects.
    """
    objects: list[Any] | None = request.state.pop(STATE_KEY, None)
    if not objects:
        return
    if error is not None and error.__traceback__ is not None:
        traceback.clear_frames(error.__traceback__.tb_next)
    await in_thread(free_large, objects)
