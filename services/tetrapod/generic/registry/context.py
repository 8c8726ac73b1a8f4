"""The request context that the registry, strategies and admission share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec

from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.scheduling.offload import in_thread
from tetrapod.machinery.long_work import TakesTooLong
from tetrapod.machinery.user import LOOPBACK, UserInfo


@dataclass(slots=True)
class Context:
    """The context of one request, or, with the defaults, of the server's own work.

    Handlers append to `warnings` and `annotations`.
    """

    user: UserInfo = LOOPBACK
    namespace: str = ""
    version: str = ""  # of the request: "v1"
    subresource: str = ""
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    large: bool = False
    """Whether the new or the stored object is large. Work on it then runs in a thread."""
    verb: str = ""
    """The verb that is authorized."""


_P = ParamSpec("_P")


@traced(lambda _, work, *__, **___: work.__name__.replace("_", " "), detailed=True)
async def without_delay(ctx: Context, work: Callable[_P, None], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call `work` on the event loop, or in a thread if the object is large or the function raises `TakesTooLong`."""
    if not ctx.large:
        try:
            work(*args, **kwargs)
            return
        except TakesTooLong:
            ctx.large = True
    await in_thread(work, *args, **kwargs)
