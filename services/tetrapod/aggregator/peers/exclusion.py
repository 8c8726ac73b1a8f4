"""The group-versions that are never taken from peers: those of custom resources and of external API servers.

All API servers of a cluster serve them from the same objects. After a deletion, the discovery documents of peers that
were fetched before still name them.

Upstream: staging/src/k8s.io/apiserver/pkg/util/peerproxy/gv_exclusion_manager.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from tetrapod.machinery.gvk import GroupVersion

GRACE: Final = 300.0
"""Seconds for which a deleted group-version stays excluded (upstream: defaultExclusionGracePeriod)."""


class Exclusion:
    """The excluded group-versions.

    Attributes:
        versions: the group-versions. A change replaces the set.
        generation: grows with every change.

    Args:
        active: returns the group-versions of all CustomResourceDefinitions and external APIServices.
    """

    def __init__(self, active: Callable[[], Iterable[GroupVersion]]) -> None:
        self.versions: frozenset[GroupVersion] = frozenset()
        self.generation = 0
        self._read_active = active
        self._active: frozenset[GroupVersion] = frozenset()
        self._deleted: dict[GroupVersion, asyncio.TimerHandle] = {}

    def changed(self) -> None:
        """Read the group-versions again. Those that were deleted stay excluded for five minutes."""
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
        self._update()

    def _update(self) -> None:
        self.versions = self._active.union(self._deleted)
        self.generation += 1
