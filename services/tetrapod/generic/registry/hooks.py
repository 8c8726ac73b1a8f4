"""What a verb is given to call back: validating admission, and the begin/end pairs of a strategy around a write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import Preconditions
from tetrapod.machinery.gvk import Object

ValidateObject: TypeAlias = Callable[[Object], Awaitable[None]]
"""Validating admission of a create (the new object) or a delete (the old one); refuses by raising. It changes nothing."""
ValidateUpdate: TypeAlias = Callable[[Object, Object], Awaitable[None]]
"""Validating admission of an update: (new, old)."""
Transform: TypeAlias = Callable[[Object | None], Awaitable[Object]]
"""The object to store, from a copy of what is stored (None: nothing). Called again when somebody else wrote meanwhile."""
NO_PRECONDITIONS: Final = Preconditions()


class Taken:
    """What a strategy took before a write (an address, a port), given back unless the write succeeds.

    An update may be tried several times: beginning again gives back what the try before took.
    """

    __slots__ = ("_created", "_ctx", "_held", "_open", "_strategy")

    def __init__(self, strategy: Strategy, ctx: Context) -> None:
        self._strategy, self._ctx = strategy, ctx
        self._open = self._created = False
        self._held: Any = None

    async def begin_create(self, obj: Object) -> None:
        await self.end(False)
        self._held = await self._strategy.begin_create(self._ctx, obj)
        self._open = self._created = True

    async def begin_update(self, new: Object, old: Object) -> None:
        await self.end(False)
        self._held = await self._strategy.begin_update(self._ctx, new, old)
        self._open, self._created = True, False

    async def end(self, succeeded: bool) -> None:
        if not self._open:
            return
        self._open = False
        finish = self._strategy.end_create if self._created else self._strategy.end_update
        await finish(self._ctx, self._held, succeeded)
