"""`KmsV1Service`: calls a KMS v1 plugin by gRPC over its Unix socket.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/encrypt/envelope/grpc_service.go
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, TypeVar

from tetrapod.generic.rpc import RpcError
from tetrapod.generic.rpc.errors import code_name, rpc_text
from tetrapod.generic.rpc.waiting import WaitingChannel
from tetrapod.generic.storage.encryption.kms.service import socket_path
from tetrapod.generic.storage.encryption.kms_v1 import kms_v1_pb2 as pb
from tetrapod.generic.storage.encryption.transformer import TransformError

_SERVICE: Final = "/v1beta1.KeyManagementService"
_VERSION: Final = "v1beta1"
_Answer = TypeVar("_Answer")


class KmsV1Service:
    """A client of one plugin, for the service KeyManagementService v1beta1.

    Each call waits for the plugin to become available, for `timeout` seconds in total, and raises TransformError if it
    fails. The first call also checks the version of the plugin's API.

    Args:
        endpoint: the address of its socket (see `socket_path`).
        timeout: seconds.
    """

    def __init__(self, endpoint: str, timeout: float) -> None:
        self._timeout = timeout
        self._channel = WaitingChannel(socket_path(endpoint))
        self._version_checked = False
        self._checking_version = asyncio.Lock()

    async def encrypt(self, plain: bytes) -> bytes:
        """Encrypt a key. Raises TransformError if the call fails."""
        return (
            await self._call("Encrypt", pb.EncryptRequest(version=_VERSION, plain=plain), pb.EncryptResponse)
        ).cipher

    async def decrypt(self, sealed: bytes) -> bytes:
        """Decrypt a key, the result of `encrypt`. Raises TransformError if the call fails."""
        request = pb.DecryptRequest(version=_VERSION, cipher=sealed)
        return (await self._call("Decrypt", request, pb.DecryptResponse)).plain

    async def close(self) -> None:
        """Close the connection. Calls that wait for the plugin fail."""
        await self._channel.close()

    async def _call(self, method: str, request: Any, answer: type[_Answer]) -> _Answer:
        deadline = time.monotonic() + self._timeout
        await self._check_version(deadline)
        try:
            return await self._channel.call(f"{_SERVICE}/{method}", request, answer, deadline - time.monotonic())
        except RpcError as error:
            raise TransformError(rpc_text(error), code_name(error.code)) from error

    async def _check_version(self, deadline: float) -> None:
        """Check the version of the plugin's API, unless an earlier call has done so.

        Args:
            deadline: the time (`time.monotonic`) at which the call fails.

        Raises:
            TransformError: the call failed, or the plugin has another version.
        """
        async with self._checking_version:
            if self._version_checked:
                return
            request = pb.VersionRequest(version=_VERSION)
            seconds = deadline - time.monotonic()
            try:
                response = await self._channel.call(f"{_SERVICE}/Version", request, pb.VersionResponse, seconds)
            except RpcError as error:
                raise TransformError(f"failed get version from remote KMS provider: {rpc_text(error)}") from error
            if response.version != _VERSION:
                raise TransformError(
                    f"KMS provider api version {response.version} is not supported, only {_VERSION} is supported now"
                )
            self._version_checked = True
