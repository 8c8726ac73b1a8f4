"""What the registry, strategies and admission know of the request that they serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, ParamSpec

from tetrapod.generic.tracing.spans import seen
from tetrapod.generic.user import LOOPBACK, UserInfo
from tetrapod.machinery.lengthy import Lengthy

LARGE: Final = 128 * 1024
"""Bytes of an object from which on it is decoded and validated in a thread: others must not wait for it."""


@dataclass(slots=True)
class Context:
    """One request, or with the defaults work of the server's own. `warnings` and `annotations` are added to on the way."""

    user: UserInfo = LOOPBACK
    namespace: str = ""
    version: str = ""  # of the request: "v1"
    subresource: str = ""
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    large: bool = False
    """Whether it is worked on in a thread."""
    verb: str = ""
    """As authorization names it."""


_P = ParamSpec("_P")


@seen(lambda _, work, *__, **___: work.__name__.replace("_", " "), detailed=True)
async def without_delay(ctx: Context, work: Callable[_P, None], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Done at once, or in a thread: where the object is large, or where the work says on the way that it is `Lengthy`."""
    if not ctx.large:
        try:
            return work(*args, **kwargs)
        except Lengthy:
            ctx.large = True
    return await asyncio.to_thread(work, *args, **kwargs)
