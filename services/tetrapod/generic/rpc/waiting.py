"""`WaitingChannel`: calls to a plugin at a Unix socket that wait until the plugin is available.

Upstream: google.golang.org/grpc, WaitForReady
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.rpc.channel import Channel
from tetrapod.generic.rpc.errors import Code, RpcError

_RETRY_SECONDS: Final = 0.1


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

    async def unary(self, method: str, message: bytes, timeout: float) -> bytes:
        """Wait for the plugin, send a message, and return the only message of the response.

        Args:
            method: the path of the method, such as `/v2.KeyManagementService/Status`.
            message: the encoded message.
            timeout: seconds for both.

        Raises:
            RpcError: the call failed, or the plugin was not available in time.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._connected()
                return await self._channel.unary(method, message, timeout)
        except TimeoutError:
            raise RpcError(Code.DEADLINE_EXCEEDED, "context deadline exceeded") from None

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
        """Close the connection. Calls that wait for the plugin fail."""
        await self._channel.close()
