"""`SignerClient`: calls the plugin that signs service account tokens by gRPC over its Unix socket.

Upstream: pkg/serviceaccount/externaljwt/plugin/plugin.go
"""

from __future__ import annotations

import time
from typing import Any, Final, TypeVar

from tetrapod.auth.tokens.external import external_pb2 as pb
from tetrapod.auth.tokens.external import metrics
from tetrapod.generic.rpc import Code, RpcError
from tetrapod.generic.rpc.errors import code_name, rpc_text
from tetrapod.generic.rpc.waiting import WaitingChannel

_SERVICE: Final = "/v1.ExternalJWTSigner"
NO_RPC: Final = "unknown-non-grpc"
"""The code in metrics for failures that are not those of a call."""
_Answer = TypeVar("_Answer")


class SignerError(Exception):
    """A failure of the plugin; the text is upstream's.

    Attributes:
        code: Go's name of the status code of the call, or `NO_RPC` if the response is invalid.
    """

    def __init__(self, text: str, code: str = NO_RPC) -> None:
        super().__init__(text)
        self.code = code

    def within(self, context: str) -> SignerError:
        """Return (not raise) the error with a text about what failed in front."""
        return SignerError(f"{context}: {self}", self.code)


class SignerClient:
    """A client of the plugin, for the service ExternalJWTSigner v1.

    Each call waits for the plugin to become available, and raises SignerError if it fails.

    Args:
        endpoint: the path of the plugin's socket, or `@name` for an abstract socket.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._channel: WaitingChannel | None = None

    async def sign(self, claims: str, timeout: float) -> pb.SignJWTResponse:
        """Return header and signature of a token.

        Args:
            claims: the second part of the token.
            timeout: seconds.

        Raises:
            SignerError: the call failed, or the plugin did not become available in time.
        """
        return await self._call("Sign", pb.SignJWTRequest(claims=claims), pb.SignJWTResponse, timeout)

    async def fetch_keys(self, timeout: float) -> pb.FetchKeysResponse:
        """Return the keys that verify tokens, waiting for the plugin for `timeout` seconds. Raises SignerError."""
        return await self._call("FetchKeys", pb.FetchKeysRequest(), pb.FetchKeysResponse, timeout)

    async def metadata(self, timeout: float) -> pb.MetadataResponse:
        """Return the longest lifetime of tokens that the plugin supports. Raises SignerError.

        Args:
            timeout: seconds for which to wait for the plugin and its response.
        """
        return await self._call("Metadata", pb.MetadataRequest(), pb.MetadataResponse, timeout)

    async def close(self) -> None:
        """Close the connection. Calls that wait for the plugin fail, and a later call opens another connection.

        After that, the client can be used in another event loop.
        """
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _call(self, method: str, request: Any, response_type: type[_Answer], timeout: float) -> _Answer:
        path, started = f"{_SERVICE}/{method}", time.perf_counter()
        code, channel = Code.OK, self._opened()
        try:
            return await channel.call(path, request, response_type, timeout)
        except RpcError as error:
            code = error.code
            raise SignerError(self._text(error, channel.dial_error), code_name(code)) from None
        finally:
            metrics.record_call(path, code_name(code), time.perf_counter() - started)

    def _opened(self) -> WaitingChannel:
        if self._channel is None:
            endpoint = self._endpoint
            self._channel = WaitingChannel(f"\0{endpoint[1:]}" if endpoint.startswith("@") else endpoint)
        return self._channel

    def _text(self, error: RpcError, reason: str) -> str:
        if error.code is not Code.DEADLINE_EXCEEDED or not reason:
            return rpc_text(error)
        return (
            "rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = "
            f'"transport: Error while dialing: dial unix {self._endpoint}: connect: {reason}"'
        )
