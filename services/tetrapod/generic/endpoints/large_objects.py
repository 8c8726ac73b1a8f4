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
    """Prepare the context of a request for freeing its large objects in a thread.

    If `context.large` is True, the request's objects are processed in threads, and `context.discard` collects objects
    that are not needed any more. `free` frees them when the request has been served.

    Args:
        context: the registry context of the request.
        request: the request.
        large: the initial value of `context.large`: whether the request body is large. The value becomes True later if
            the stored object is large.
    """
    context.large = large
    context.discarded = request.state[STATE_KEY] = []


async def free(request: Request, error: BaseException | None = None) -> None:
    """Free the objects that `context.discard` has collected, in a thread. Objects in use elsewhere are not freed.

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
