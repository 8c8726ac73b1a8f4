"""Callbacks that verbs accept, and the begin/end hooks of a strategy around a write.

The callbacks are validating admission and transformations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import Preconditions
from tetrapod.machinery.gvk import Object

ValidateObject: TypeAlias = Callable[[Object], Awaitable[None]]
"""Validating admission of a create (with the new object) or a delete (with the old one). It rejects by raising and
changes nothing.
"""
ValidateUpdate: TypeAlias = Callable[[Object, Object], Awaitable[None]]
"""Validating admission of an update: (new, old)."""
Transform: TypeAlias = Callable[[Object | None], Awaitable[Object]]
"""A function from a copy of the stored object (None: absent) to the object to store. Called again if another write
came first.
"""
NO_PRECONDITIONS: Final = Preconditions()


class Allocation:
    """Resources that a strategy allocated before a write (an address, a port), released unless the write succeeds.

    An update may be tried several times: beginning again releases what the previous attempt allocated.
    """

    __slots__ = ("_created", "_ctx", "_held", "_open", "_strategy")

    def __init__(self, strategy: Strategy, ctx: Context) -> None:
        self._strategy, self._ctx = strategy, ctx
        self._open = self._created = False
        self._held: Any = None

    async def begin_create(self, obj: Object) -> None:
        """Call the strategy's `begin_create`."""
        await self.end(False)
        self._held = await self._strategy.begin_create(self._ctx, obj)
        self._open = self._created = True

    async def begin_update(self, new: Object, old: Object) -> None:
        """Call the strategy's `begin_update`."""
        await self.end(False)
        self._held = await self._strategy.begin_update(self._ctx, new, old)
        self._open, self._created = True, False

    async def end(self, succeeded: bool) -> None:
        """Call the strategy's `end_create` or `end_update`, if one was begun."""
        if not self._open:
            return
        self._open = False
        finish = self._strategy.end_create if self._created else self._strategy.end_update
        await finish(self._ctx, self._held, succeeded)
