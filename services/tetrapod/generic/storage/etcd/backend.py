"""`EtcdBackend`: the store that all services and replicas share.

Every call has a deadline. Reads are retried once on the next endpoint. Writes are not, because it is unknown whether
they took effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.dialing import Dialer
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.rpc import RpcError
from tetrapod.generic.storage.backend import BackendEvent, KeyValue, Range, WriteResult
from tetrapod.generic.storage.etcd import etcd_pb2 as pb
from tetrapod.generic.storage.etcd.compactor import Compactor
from tetrapod.generic.storage.etcd.connection import Connection, Credentials, Endpoints
from tetrapod.generic.storage.etcd.errors import points_elsewhere, translated
from tetrapod.generic.storage.etcd.history import read_history
from tetrapod.generic.storage.etcd.watching import EtcdWatch, key_value, open_watch
from tetrapod.machinery.shared_call import SharedCall

COMPACTION_SECONDS: Final = 300.0
TIMEOUT: Final = 5.0
RANGE_TIMEOUT: Final = 30.0


class EtcdBackend:
    """The implementation of `Backend` over etcd.

    Args:
        endpoints: URLs of the members of one cluster.
        ca: file with the CA certificates of the members; None uses those of the system.
        cert: file with the client certificate; None sends none.
        key: file with the client's private key; None if it is in the file of the certificate.
        timeout: seconds within which a call must be answered; reads of ranges and compactions have 30.
        compaction_seconds: the interval of compactions; 0 means that this process does not compact etcd.
        dialer: connects to the members by way of a proxy; None to connect directly.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        *,
        timeout: float = TIMEOUT,
        compaction_seconds: float = COMPACTION_SECONDS,
        dialer: Dialer | None = None,
    ) -> None:
        self._endpoints = Endpoints(list(endpoints), Credentials(ca, cert, key), dialer)
        self._timeout = timeout
        self._revision = SharedCall(self._read_revision)
        self._compaction_seconds = compaction_seconds
        self._compactor = Compactor(self._txn, self.compact)
        self._compacting: asyncio.Task[None] | None = None

    # Reads

    async def get(self, key: str) -> KeyValue | None:
        try:
            request = pb.RangeRequest(key=key.encode())
        except UnicodeEncodeError:  # bytes of a path that are not UTF-8: no object can have such a name
            return None
        response = await self._read("range", request, self._timeout)
        return key_value(response.kvs[0]) if response.kvs else None

    async def range(
        self,
        start: str,
        end: str,
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
        count_only: bool = False,
        counted: bool = True,
    ) -> Range:
        request = pb.RangeRequest(
            key=start.encode(),
            range_end=end.encode(),
            limit=limit,
            revision=revision,
            keys_only=keys_only,
            count_only=count_only,
        )
        response = await self._read("range", request, RANGE_TIMEOUT if not count_only else self._timeout)
        return Range([key_value(kv) for kv in response.kvs], response.more, response.count, response.header.revision)

    async def revision(self) -> int:
        """Return the current revision, linearizably. All concurrent callers share one request to etcd."""
        return await self._revision()

    async def _read_revision(self) -> int:
        response = await self._read("range", pb.RangeRequest(key=b"\0", count_only=True), self._timeout)
        revision: int = response.header.revision
        return revision

    async def size(self) -> int:
        return int((await self._read("status", pb.StatusRequest(), self._timeout)).dbSize)

    # Writes

    async def put_if(
        self, key: str, value: bytes, expected: int, *, lease: int = 0, deleting: bool = False
    ) -> WriteResult:
        current_span().event("TransformToStorage succeeded")
        put = pb.RequestOp(request_put=pb.PutRequest(key=key.encode(), value=value, lease=lease))
        return await self._write(key, expected, put)

    async def delete_if(self, key: str, expected: int) -> WriteResult:
        if not expected:  # the comparison "absent" would succeed and delete nothing, so it is not a success
            return WriteResult(False, await self.revision(), await self.get(key))
        return await self._write(
            key, expected, pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key.encode()))
        )

    async def _write(self, key: str, expected: int, operation: pb.RequestOp) -> WriteResult:
        request = pb.TxnRequest(
            compare=[pb.Compare(target=pb.Compare.MOD, key=key.encode(), mod_revision=expected)],
            success=[operation],
            failure=[pb.RequestOp(request_range=pb.RangeRequest(key=key.encode()))],
        )
        response = await self._txn(request)
        if response.succeeded:
            return WriteResult(True, response.header.revision, None)
        kvs = response.responses[0].response_range.kvs
        return WriteResult(False, response.header.revision, key_value(kvs[0]) if kvs else None)

    async def grant_lease(self, ttl: int) -> int:
        response = await self._once("grant", pb.LeaseGrantRequest(TTL=ttl), self._timeout)
        if response.error:
            raise Unavailable(f"etcd: no lease: {response.error}")
        lease: int = response.ID
        return lease

    async def time_to_live(self, lease: int) -> int:
        """Return the remaining seconds of a lease, negative if it has expired or does not exist.

        Raises:
            Unavailable: etcd does not answer.
        """
        return int((await self._read("time_to_live", pb.LeaseTimeToLiveRequest(ID=lease), self._timeout)).TTL)

    async def compact(self, revision: int) -> None:
        await self._once("compact", pb.CompactionRequest(revision=revision), RANGE_TIMEOUT)

    async def _txn(self, request: pb.TxnRequest) -> pb.TxnResponse:
        response: pb.TxnResponse = await self._once("txn", request, self._timeout)
        return response

    async def check(self) -> None:
        """Check that all endpoints that answer belong to one cluster, connecting to each.

        Raises CannotOpen if they do not.
        """
        await self._endpoints.check()

    # Watches

    def watch(
        self, start: str, end: str, from_revision: int, *, previous: bool = True
    ) -> AbstractAsyncContextManager[EtcdWatch]:
        return open_watch(self._endpoints, start, end, from_revision, previous=previous)

    def history(self, start: str, end: str, first: int, last: int) -> AsyncGenerator[Sequence[BackendEvent], None]:
        return read_history(self._endpoints, (start, end), first, last)

    @property
    def progress_reliable(self) -> bool:
        return self._endpoints.progress_reliable

    # Calls

    async def _read(self, method: str, request: Any, timeout: float) -> Any:
        """Call a method of etcd that changes nothing, and once more on the next endpoint if this one did not answer.

        Args:
            method: the method of `Connection`, such as `range`.
            request: the message.
            timeout: seconds for each of the two calls.

        Raises:
            Exception: the error of `backend.py` for the gRPC error (see `translated`).
        """
        connection = await self._connection()
        try:
            return await getattr(connection, method)(request, timeout=timeout)
        except RpcError as error:
            if not points_elsewhere(error):
                raise translated(error) from error
            self._endpoints.leave(connection)
        return await self._once(method, request, timeout)

    async def _once(self, method: str, request: Any, timeout: float) -> Any:
        connection = await self._connection()
        try:
            return await getattr(connection, method)(request, timeout=timeout)
        except RpcError as error:
            if points_elsewhere(error):
                self._endpoints.leave(connection)
            raise translated(error) from error

    async def _connection(self) -> Connection:
        if self._compacting is None and self._compaction_seconds:
            self._compacting = asyncio.create_task(self._compactor.run(self._compaction_seconds), name="etcd compactor")
        return await self._endpoints.connection()

    async def close(self) -> None:
        if self._compacting is not None:
            self._compacting.cancel()
            await asyncio.gather(self._compacting, return_exceptions=True)
        await self._endpoints.close()
