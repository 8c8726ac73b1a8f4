"""`KmsService`: calls a KMS plugin by gRPC over its Unix socket.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service.go;
staging/src/k8s.io/kms/pkg/util, ParseEndpoint
"""

from __future__ import annotations

import time
from typing import Any, Final, TypeVar

from tetrapod.generic.rpc import Code, RpcError
from tetrapod.generic.rpc.errors import code_name, rpc_text
from tetrapod.generic.rpc.waiting import WaitingChannel
from tetrapod.generic.storage.encryption.kms import kms_pb2 as pb
from tetrapod.generic.storage.encryption.metrics import KMS_LATENCY
from tetrapod.generic.storage.encryption.transformer import TransformError
from tetrapod.machinery.golang.urls import parse

_SERVICE: Final = "/v2.KeyManagementService"
_Answer = TypeVar("_Answer")


def socket_path(endpoint: str) -> str:
    """Return the socket path of a valid endpoint `unix:///run/kms.sock`, or of `unix:///@name` for an abstract socket.

    The path of an abstract socket begins with a NUL byte.
    """
    path = parse(endpoint).path
    return "\0" + path[2:] if path.startswith("/@") else path


class KmsService:
    """A client of one plugin, for the service KeyManagementService v2.

    Each call waits for the plugin to become available, for `timeout` seconds in total, and raises TransformError if it
    fails.

    Args:
        name: the name of the plugin in the EncryptionConfiguration.
        endpoint: the address of its socket (see `socket_path`).
        timeout: seconds.
    """

    def __init__(self, name: str, endpoint: str, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        self._channel = WaitingChannel(socket_path(endpoint))

    async def status(self) -> pb.StatusResponse:
        """Return the plugin's health, version and current key ID. Raises TransformError if the call fails."""
        return await self._call("Status", pb.StatusRequest(), pb.StatusResponse)

    async def encrypt(self, uid: str, plaintext: bytes) -> pb.EncryptResponse:
        """Encrypt a seed. The response has the ciphertext, the ID of the key that was used, and annotations.

        Args:
            uid: identifies the call in the plugin's logs.
            plaintext: the seed.

        Raises:
            TransformError: the call failed.
        """
        return await self._call("Encrypt", pb.EncryptRequest(plaintext=plaintext, uid=uid), pb.EncryptResponse)

    async def decrypt(self, uid: str, encrypted: pb.EncryptedObject) -> bytes:
        """Return the decrypted seed of a stored value.

        Args:
            uid: identifies the call in the plugin's logs.
            encrypted: the stored message, whose data is not used.

        Raises:
            TransformError: the call failed.
        """
        request = pb.DecryptRequest(
            ciphertext=encrypted.encryptedDEKSource, uid=uid, key_id=encrypted.keyID, annotations=encrypted.annotations
        )
        return (await self._call("Decrypt", request, pb.DecryptResponse)).plaintext

    async def close(self) -> None:
        """Close the connection. Calls that wait for the plugin fail."""
        await self._channel.close()

    async def _call(self, method: str, request: Any, answer: type[_Answer]) -> _Answer:
        path, started = f"{_SERVICE}/{method}", time.perf_counter()
        code = Code.OK
        try:
            return await self._channel.call(path, request, answer, self._timeout)
        except RpcError as error:
            code = error.code
            raise TransformError(rpc_text(error), code_name(code)) from error
        finally:
            KMS_LATENCY.observe((self._name, path, code_name(code)), time.perf_counter() - started)
