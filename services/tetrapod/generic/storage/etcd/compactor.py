"""Compaction of etcd every five minutes, so that history of five to ten minutes is kept.

Follows k8s.io/apiserver/pkg/storage/etcd3/compact.go, key and all: of the API servers that share an etcd, ours and stock ones, whoever
increments the version of `compact_rev_key` first compacts, and the others learn the new version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from tetrapod.generic.storage.backend import Compacted
from tetrapod.generic.storage.etcd import etcd_pb2 as pb
from tetrapod.generic.unavailable import Unavailable

log = logging.getLogger(__name__)

COMPACT_REV_KEY: Final = b"compact_rev_key"


class Compactor:
    """`txn` and `compact` are the calls; `version` is the logical time, `revision` what the next round compacts to."""

    def __init__(self, txn: Callable[[pb.TxnRequest], Awaitable[pb.TxnResponse]], compact: Callable[[int], Awaitable[None]]) -> None:
        self._txn = txn
        self._compact = compact
        self.version = 0
        self.revision = 0

    async def run(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                await self.round()
            except (Unavailable, Compacted) as error:
                log.info("compaction of etcd is put off: %s", error)

    async def round(self) -> bool:
        """True if this process compacted. The first round only learns where the others are."""
        target = self.revision
        request = pb.TxnRequest(
            compare=[pb.Compare(target=pb.Compare.VERSION, key=COMPACT_REV_KEY, version=self.version)],
            success=[pb.RequestOp(request_put=pb.PutRequest(key=COMPACT_REV_KEY, value=str(target).encode()))],
            failure=[pb.RequestOp(request_range=pb.RangeRequest(key=COMPACT_REV_KEY))],
        )
        response = await self._txn(request)
        self.revision = response.header.revision
        if not response.succeeded:
            self.version = response.responses[0].response_range.kvs[0].version
            return False
        self.version += 1
        if target == 0:
            return False
        await self._compact(target)
        return True
