"""A KMS v1 plugin built with grpcio, the library of real plugins. Its key is kept in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import grpc
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from support.grpc_plugin import start_plugin
from tetrapod.generic.storage.encryption.kms_v1 import kms_v1_pb2 as pb

SERVICE = "v1beta1.KeyManagementService"


class KmsV1Plugin:
    """A KMS v1 plugin that listens on a socket in `directory`.

    Attributes:
        version: the API version that it reports.
        calls: the number of calls by method.
        encrypts, decrypts: whether these calls succeed.
    """

    def __init__(self, directory: Path, version: str = "v1beta1") -> None:
        self.endpoint = f"unix://{directory / 'kms.sock'}"
        self.version = version
        self.encrypts = self.decrypts = True
        self.calls = {"Version": 0, "Encrypt": 0, "Decrypt": 0}
        self._key = AESGCM(AESGCM.generate_key(256))
        self._server: grpc.Server | None = None

    def start(self) -> None:
        methods = {
            "Version": (self._version, pb.VersionRequest),
            "Encrypt": (self._encrypt, pb.EncryptRequest),
            "Decrypt": (self._decrypt, pb.DecryptRequest),
        }
        self._server = start_plugin(self.endpoint, SERVICE, methods)

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None

    def _version(self, request: pb.VersionRequest, context: Any) -> pb.VersionResponse:
        self.calls["Version"] += 1
        return pb.VersionResponse(version=self.version, runtime_name="test", runtime_version="0.0.1")

    def _encrypt(self, request: pb.EncryptRequest, context: Any) -> pb.EncryptResponse:
        self.calls["Encrypt"] += 1
        assert request.version == "v1beta1"
        if not self.encrypts:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "failed precondition - key disabled")
        nonce = os.urandom(12)
        return pb.EncryptResponse(cipher=nonce + self._key.encrypt(nonce, request.plain, None))

    def _decrypt(self, request: pb.DecryptRequest, context: Any) -> pb.DecryptResponse:
        self.calls["Decrypt"] += 1
        assert request.version == "v1beta1"
        if not self.decrypts:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "failed precondition - key disabled")
        return pb.DecryptResponse(plain=self._key.decrypt(request.cipher[:12], request.cipher[12:], None))
