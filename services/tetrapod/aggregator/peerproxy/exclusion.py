"""The group-versions that are never taken from peers: those of custom resources and of external API servers.

All API servers of a cluster serve them from the same objects. After a deletion, the discovery documents of peers that
were fetched before still name them. They are fetched again when the exclusion of the group-version ends.

Upstream: staging/src/k8s.io/apiserver/pkg/util/peerproxy/gv_exclusion_manager.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from tetrapod.machinery.gvk import GroupVersion

GRACE: Final = 300.0
"""Seconds for which a deleted group-version stays excluded (upstream: defaultExclusionGracePeriod)."""
_DELAY: Final = 0.1
"""Seconds from the first change to the reading of the group-versions, which is once for all changes until then."""


class Exclusion:
    """Keeps the set of group-versions that are not taken from peers: those of CRDs and of external APIServices.

    A group-version stays in the set for five minutes after its last definition was deleted.

    Attributes:
        versions: the group-versions. A change replaces the set.
        generation: grows with every change.
        expired: called with a deleted group-version whose exclusion ends.

    Args:
        active: returns the group-versions of all CustomResourceDefinitions and external APIServices.
    """

    def __init__(self, active: Callable[[], Iterable[GroupVersion]]) -> None:
        self.versions: frozenset[GroupVersion] = frozenset()
        self.generation = 0
        self.expired: Callable[[GroupVersion], None] = lambda _gv: None
        self._read_active = active
        self._active: frozenset[GroupVersion] = frozenset()
        self._deleted: dict[GroupVersion, asyncio.TimerHandle] = {}
        self._pending: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        """Read the group-versions again, shortly after the first of several changes."""
        if self._pending is None:
            self._pending = asyncio.get_running_loop().call_later(_DELAY, self.read)

    def read(self) -> None:
        """Read the group-versions again now. Those that were deleted stay excluded for five minutes."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        active = frozenset(self._read_active())
        if active == self._active:
            return
        loop = asyncio.get_running_loop()
        for gv in self._active - active:
            if gv in self._deleted:
                self._deleted[gv].cancel()
            self._deleted[gv] = loop.call_later(GRACE, self._expire, gv)
        self._active = active
        self._update()

    def _expire(self, gv: GroupVersion) -> None:
        self._deleted.pop(gv, None)
        if gv not in self._active:
            self.expired(gv)
        self._update()

    def _update(self) -> None:
        self.versions = self._active.union(self._deleted)
        self.generation += 1
