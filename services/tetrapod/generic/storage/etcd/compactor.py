"""Compaction of etcd every five minutes, so that five to ten minutes of history are kept.

The API servers that share an etcd, both ours and stock ones, coordinate with upstream's key: the one that first
increments the version of `compact_rev_key` compacts, and the others read the new version.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/compact.go
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import Compacted
from tetrapod.generic.storage.etcd import etcd_pb2 as pb

log = logging.getLogger(__name__)

COMPACT_REV_KEY: Final = b"compact_rev_key"


class Compactor:
    """The task of one process that compacts etcd periodically, unless another process does.

    Args:
        txn: sends a transaction to etcd, and returns the response.
        compact: compacts etcd to a revision.

    Attributes:
        version: the version of the key `compact_rev_key`, by which the processes agree, as this process knows it.
        revision: the revision to which the next round compacts; 0 if it is not known yet.
    """

    def __init__(
        self, txn: Callable[[pb.TxnRequest], Awaitable[pb.TxnResponse]], compact: Callable[[int], Awaitable[None]]
    ) -> None:
        self._txn = txn
        self._compact = compact
        self.version = 0
        self.revision = 0

    async def run(self, interval: float) -> None:
        """Compact every `interval` seconds until cancelled, first after one interval. Errors of etcd are logged."""
        while True:
            await asyncio.sleep(interval)
            try:
                await self.round()
            except (Unavailable, Compacted) as error:
                log.info("compaction of etcd is postponed: %s", error)

    async def round(self) -> bool:
        """Compact etcd to its revision at the last round, if no other process has done so since; return whether it did.

        The first round compacts nothing, because the revision is not known yet.

        Raises:
            Unavailable: etcd did not answer.
            Compacted: the revision has been compacted by another client.
        """
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
