"""Objects of a large request, which are freed in a thread when the request has been served.

Python frees an object with all its parts at once. For a Pod of 20 MB that keeps the event loop from running for a tenth
of a second.
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
    """Set `context.large`, by which a request's objects are processed in threads, and a list for discarded objects.

    `context.discard` adds to the list, and `free` frees its objects in a thread.

    Args:
        context: the context of the request.
        request: the request.
        large: whether its body is large. It becomes true later if the stored object is large.
    """
    context.large = large
    context.discarded = request.state[STATE_KEY] = []


async def free(request: Request, error: BaseException | None = None) -> None:
    """Free the objects that were discarded, unless something still refers to them.

    Args:
        request: the request that has been served.
        error: the error that ended it, whose traceback refers to the objects too.
    """
    objects: list[Any] | None = request.state.pop(STATE_KEY, None)
    if not objects:
        return
    if error is not None and error.__traceback__ is not None:
        traceback.clear_frames(error.__traceback__.tb_next)
    await in_thread(free_large, objects)
