"""Callbacks that the verbs of a store accept, and the allocation hooks of a strategy around a write.

The callbacks are validating admission (`ValidateObject`, `ValidateUpdate`) and the change of an update (`Transform`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.gvk import Object

ValidateObject: TypeAlias = Callable[[Object], Awaitable[None]]
"""Validating admission of a create (with the new object) or a delete (with the old one). It rejects by raising and
changes nothing.
"""
ValidateUpdate: TypeAlias = Callable[[Object, Object], Awaitable[None]]
"""Validating admission of an update, called with the new and the old object.

It rejects by raising and changes nothing.
"""
Transform: TypeAlias = Callable[[Object | None], Awaitable[Object]]
"""A function from a copy of the stored object (None: absent) to the object to store. Called again if another write
came first.
"""


class Allocation:
    """The addresses and ports that a strategy allocates before a write. They are released unless the write succeeds.

    An update may be tried several times: beginning again releases what the previous attempt allocated. The caller calls
    `end` in any case.

    Args:
        strategy: allocates and releases.
        ctx: the context of the request, which is passed to the strategy.
    """

    __slots__ = ("_created", "_ctx", "_held", "_open", "_strategy")

    def __init__(self, strategy: Strategy, ctx: Context) -> None:
        self._strategy, self._ctx = strategy, ctx
        self._open = self._created = False
        self._held: Any = None

    async def begin_create(self, obj: Object) -> None:
        """Let the strategy allocate addresses or ports for a new object (`Strategy.begin_create`), and set them on it.

        Raises:
            StatusError: nothing can be allocated.
        """
        await self.end(False)
        self._held = await self._strategy.begin_create(self._ctx, obj)
        self._open = self._created = True

    async def begin_update(self, new: Object, old: Object) -> None:
        """Let the strategy allocate the addresses or ports that an update adds, and set them on `new`.

        See `Strategy.begin_update`.

        Raises:
            StatusError: nothing can be allocated.
        """
        await self.end(False)
        self._held = await self._strategy.begin_update(self._ctx, new, old)
        self._open, self._created = True, False

    async def end(self, succeeded: bool) -> None:
        """Call the strategy's `end_create` or `end_update` for the last allocation. Do nothing without an allocation.

        Args:
            succeeded: whether the object was stored; if not, the allocation is released.
        """
        if not self._open:
            return
        self._open = False
        finish = self._strategy.end_create if self._created else self._strategy.end_update
        await finish(self._ctx, self._held, succeeded)
