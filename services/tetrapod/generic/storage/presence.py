"""`Presence`: tracks which resources have any objects, by the keys of the store.

With it, a user of many resources needs no watch cache for each of them, most of which would be empty. The keys of each
API group are scanned once and then followed by a single watch, however many resources the group has. A resource that
once had an object stays marked as present while its group is observed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import Backend, Compacted, FutureRevision, prefix_end

log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 0.5


class Presence:
    """The set of resources that have or had objects; it supports `(group, resource) in presence`.

    A resource stays in the set when its last object is deleted. Keys have the form ROOT/GROUP/RESOURCE/…, as those of
    custom resources.

    Args:
        backend: the store.
        root: the prefix of the keys of all resources ("/registry").

    Attributes:
        changed: set when a resource was added to the set; a waiter clears it.
    """

    def __init__(self, backend: Backend, root: str = "/registry") -> None:
        self._backend = backend
        self._root = root.rstrip("/")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._present: set[tuple[str, str]] = set()
        self.changed = asyncio.Event()

    def __contains__(self, resource: tuple[str, str]) -> bool:
        """Return whether an object of the resource, a tuple of group and resource, has been seen."""
        return resource in self._present

    def follow(self, groups: Collection[str]) -> None:
        """Find out, from now on, which resources of exactly these API groups have stored objects.

        Resources of all other groups no longer count as present. A task is started for each new group. This returns
        before the tasks have looked for objects.
        """
        for group in self._tasks.keys() - set(groups):
            self._tasks.pop(group).cancel()
            self._present = {resource for resource in self._present if resource[0] != group}
        for group in set(groups) - self._tasks.keys():
            self._tasks[group] = asyncio.create_task(self._run(group), name=f"presence {group}")

    async def close(self) -> None:
        """Cancel the tasks of all groups, and remove all resources from the set."""
        self.follow(())
        await asyncio.sleep(0)

    async def _run(self, group: str) -> None:
        prefix = f"{self._root}/{group}/"
        while True:
            try:
                revision = await self._scan(group, prefix)
                async with self._backend.watch(prefix, prefix_end(prefix), revision + 1, previous=False) as stream:
                    async for batch in stream:
                        for event in batch.events:
                            if event.value is not None:
                                self._add(group, event.key[len(prefix) :])
            except (Unavailable, Compacted, FutureRevision, OSError) as error:
                log.debug("the objects of %s cannot be followed: %s", group, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _scan(self, group: str, prefix: str) -> int:
        """Add the resources of a group that have objects, and return the revision of the first read.

        One key per resource is read: each read starts behind the last possible key of the previous resource.

        Args:
            group: the API group.
            prefix: the prefix of its keys (ROOT/GROUP/).
        """
        start, end, revision = prefix, prefix_end(prefix), 0
        while True:
            page = await self._backend.range(start, end, limit=1, keys_only=True, counted=False)
            revision = revision or page.revision
            if not page.kvs:
                return revision
            resource = self._add(group, page.kvs[0].key[len(prefix) :])
            start = prefix_end(f"{prefix}{resource}/")

    def _add(self, group: str, key: str) -> str:
        resource = key.partition("/")[0]
        if (group, resource) not in self._present:
            self._present.add((group, resource))
            self.changed.set()
        return resource
