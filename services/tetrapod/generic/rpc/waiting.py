"""`WaitingChannel`: calls to a plugin at a Unix socket that wait until the plugin is available.

Upstream: google.golang.org/grpc, WaitForReady
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError

from tetrapod.generic.rpc.channel import Channel
from tetrapod.generic.rpc.errors import Code, RpcError

_RETRY_SECONDS: Final = 0.1
_Answer = TypeVar("_Answer")


class WaitingChannel:
    """A gRPC channel to a Unix socket, which is connected on demand and again after a loss.

    Attributes:
        dial_error: why the last attempt to connect failed; "" if it succeeded.

    Args:
        path: the path of the socket. That of an abstract socket begins with a NUL byte.
    """

    def __init__(self, path: str) -> None:
        self._channel = Channel("localhost", 0, path=path)
        self._connecting = asyncio.Lock()
        self.dial_error = ""

    async def call(self, method: str, request: Any, answer: type[_Answer], timeout: float) -> _Answer:
        """Wait until the server at the socket can be reached, send a message, and return the response's only message.

        Args:
            method: the path of the method, such as `/v2.KeyManagementService/Status`.
            request: the message.
            answer: the type of the response.
            timeout: seconds for the wait and the call together.

        Raises:
            RpcError: the call failed, the server could not be reached in time, or the response is malformed.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._connected()
                encoded = await self._channel.unary(method, request.SerializeToString(), timeout)
        except TimeoutError:
            raise RpcError(Code.DEADLINE_EXCEEDED, "context deadline exceeded") from None
        try:
            response: _Answer = answer.FromString(encoded)  # type: ignore[attr-defined]
        except DecodeError as error:
            raise RpcError(Code.INTERNAL, str(error)) from None
        return response

    async def _connected(self) -> None:
        async with self._connecting:
            while not self._channel.ready:
                try:
                    await self._channel.connect()
                    self.dial_error = ""
                except OSError as error:
                    self.dial_error = (error.strerror or str(error)).lower()
                    await asyncio.sleep(_RETRY_SECONDS)
                except RpcError as error:
                    if error.code is Code.CANCELLED:  # the channel was closed
                        raise
                    self.dial_error = error.details
                    await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        """Close the connection. Calls that wait for the server fail with RpcError."""
        await self._channel.close()
