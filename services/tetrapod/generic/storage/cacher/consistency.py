"""`ConsistencyChecker`: compares a watch cache with the store every few minutes (gate DetectCacheInconsistency).

Upstream compares the digests of two whole lists. Here the store is read in pages of keys. Each page is compared with
the state of the cache at the revision of the page, so that no step of the event loop is long.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/consistency/checker.go
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from typing import Final, NamedTuple, NoReturn

from tetrapod.generic.configuration.feature_gates import enabled
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.storage.backend import Backend, Range, prefix_end
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.freshness import TIMEOUT
from tetrapod.generic.storage.cacher.reflector import Reflector
from tetrapod.generic.storage.latency import context_without_request
from tetrapod.machinery.golang.booleans import parse_bool
from tetrapod.machinery.gvk import GroupResource

log = logging.getLogger(__name__)

PERIOD: Final = 300.0
"""Seconds between two comparisons, at least. As upstream, they are up to one half longer."""
PAGE: Final = 1000
"""Keys that are compared in one step of the event loop."""
_PANIC: Final = "KUBE_WATCHCACHE_CONSISTENCY_CHECKER"
_CHECKS: Final = Counter(
    "apiserver_storage_consistency_checks_total",
    "Counter for status of consistency checks between etcd and watch cache",
    ("group", "resource", "status"),
)


class Difference(NamedTuple):
    """An object whose resource version in the cache is not that in the store, at the revision of the comparison.

    Attributes:
        key: the key, relative to the resource's prefix.
        revision: the revision of the store at which cache and store were compared.
        cached: the resource version in the cache; None if the cache does not have the object.
        stored: the resource version in the store; None if the store does not have the object.
    """

    key: str
    revision: int
    cached: int | None
    stored: int | None


class ConsistencyChecker:
    """The periodic comparison of a watch cache with the store.

    A cache that differs is marked: `Cache.consistent` is False until the next comparison without a difference.

    Args:
        backend: the store.
        prefix: the prefix of the resource's keys.
        cache: the watch cache.
        reflector: the task that fills and follows the cache.
        resource: the name of the resource in the log and the metric.
    """

    def __init__(
        self, backend: Backend, prefix: str, cache: Cache, reflector: Reflector, resource: GroupResource
    ) -> None:
        self._backend = backend
        self._prefix = prefix
        self._cache = cache
        self._reflector = reflector
        self._resource = resource
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def schedule(self) -> None:
        """Schedule the next comparison, if upstream's feature gate or environment variable enables it.

        They are DetectCacheInconsistency and KUBE_WATCHCACHE_CONSISTENCY_CHECKER.
        """
        if enabled("DetectCacheInconsistency") or _panics():
            seconds = PERIOD * random.uniform(1.0, 1.5)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.create_task(
            self._check_and_schedule(), name=f"consistency {self._prefix}", context=context_without_request()
        )

    async def _check_and_schedule(self) -> None:
        try:
            await self.check()
        finally:
            self.schedule()

    async def check(self) -> None:
        """Compare the cache with the store once, count the result and log a difference.

        `Cache.consistent` becomes True if they are equal, else False: lists at an exact revision are then read from
        the store. If the comparison itself fails, that is logged and not raised, and the attribute is not changed.

        Nothing is compared if the store's progress notifications are unreliable. The cache may then never learn that
        it has all events up to the revision of a page (`Freshness.at_least`).
        """
        if not self._backend.progress_reliable:
            return
        try:
            difference = await self._difference()
        except Exception as error:
            log.error("comparing the watch cache of %s with the store failed: %s", self._prefix, error)
            _CHECKS.add((*self._resource, "error"))
            return
        self._cache.consistent = difference is None
        if difference is None:
            _CHECKS.add((*self._resource, "success"))
            return
        _CHECKS.add((*self._resource, "failure"))
        log.error(
            "the watch cache differs from the store at revision %d: %s%s is cached with resource version %s, and "
            "stored with %s",
            difference.revision,
            self._prefix,
            difference.key,
            difference.cached,
            difference.stored,
        )
        if _panics():
            _panic()

    async def _difference(self) -> Difference | None:
        """Return the first difference in key order, or None if cache and store are equal.

        Raises:
            Unavailable: the store does not answer, or the cache cannot be compared now.
        """
        start, end = self._prefix, prefix_end(self._prefix)
        while True:
            page = await self._backend.range(start, end, limit=PAGE, keys_only=True, counted=False)
            if (difference := await self._compare(start, page)) is not None:
                return difference
            if not page.more:
                return None
            start = page.kvs[-1].key + "\0"
            await asyncio.sleep(0)

    async def _compare(self, start: str, page: Range) -> Difference | None:
        """Return the first difference between a page of the store, from the key `start` on, and the cache.

        Returns:
            None if they are equal.

        Raises:
            Unavailable: the store does not answer, or the cache has not reached the revision of the page or is already
                too far beyond it.
        """
        if not await self._reflector.reach(page.revision, TIMEOUT) or not self._cache.filled:
            raise Unavailable("the cache is not ready")
        skipped = len(self._prefix)
        last = page.kvs[-1].key[skipped:] if page.more else None
        cached = self._cache.revisions(start[skipped:], last, page.revision)
        if cached is None:
            raise Unavailable("the cache has changed too much")
        stored = {kv.key[skipped:]: kv.mod_revision for kv in page.kvs}
        if cached == stored:
            return None
        for key in sorted(cached.keys() | stored.keys()):
            if cached.get(key) != stored.get(key):
                return Difference(key, page.revision, cached.get(key), stored.get(key))
        return None

    async def close(self) -> None:
        """Stop the comparisons."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()


def _panics() -> bool:
    """Return whether the process is to end at a difference, which upstream's environment variable asks for."""
    try:
        return parse_bool(os.environ.get(_PANIC, ""))
    except ValueError:
        return False


def _panic() -> NoReturn:
    """End the process at once with the exit code of a Go program that panics."""
    log.critical("the process ends, because %s is set", _PANIC)
    logging.shutdown()
    os._exit(2)
