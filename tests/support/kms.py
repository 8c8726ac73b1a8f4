"""A KMS v2 plugin built with grpcio, the library of real plugins. Its keys are kept in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import grpc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from support.grpc_plugin import start_plugin
from tetrapod.generic.storage.encryption.kms import kms_pb2 as pb

SERVICE = "v2.KeyManagementService"


class KmsPlugin:
    """A KMS plugin that listens on a socket in `directory`, or on an abstract one.

    Attributes:
        key_id: the current key. Assigning another name rotates the key.
        calls: the number of calls by method.
    """

    def __init__(self, directory: Path, key_id: str = "key-1", *, abstract: bool = False) -> None:
        self.socket = directory / "kms.sock"
        self.abstract = abstract
        self.key_id = key_id
        self.healthz = "ok"
        self.version = "v2"
        self.calls = {"Status": 0, "Encrypt": 0, "Decrypt": 0}
        self._keys: dict[str, AESGCM] = {}
        self._server: grpc.Server | None = None

    @property
    def endpoint(self) -> str:
        return f"unix:///@{self.socket}" if self.abstract else f"unix://{self.socket}"

    def start(self) -> None:
        methods = {
            "Status": (self._status, pb.StatusRequest),
            "Encrypt": (self._encrypt, pb.EncryptRequest),
            "Decrypt": (self._decrypt, pb.DecryptRequest),
        }
        address = f"unix-abstract:{self.socket}" if self.abstract else self.endpoint
        self._server = start_plugin(address, SERVICE, methods)

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None

    def _key(self, name: str) -> AESGCM:
        return self._keys.setdefault(name, AESGCM(AESGCM.generate_key(256)))

    def _status(self, request: pb.StatusRequest, context: Any) -> pb.StatusResponse:
        self.calls["Status"] += 1
        return pb.StatusResponse(version=self.version, healthz=self.healthz, key_id=self.key_id)

    def _encrypt(self, request: pb.EncryptRequest, context: Any) -> pb.EncryptResponse:
        self.calls["Encrypt"] += 1
        nonce = os.urandom(12)
        sealed = nonce + self._key(self.key_id).encrypt(nonce, request.plaintext, None)
        return pb.EncryptResponse(ciphertext=sealed, key_id=self.key_id, annotations={"made.example.com": b"here"})

    def _decrypt(self, request: pb.DecryptRequest, context: Any) -> pb.DecryptResponse:
        self.calls["Decrypt"] += 1
        assert request.annotations["made.example.com"] == b"here"
        try:
            plain = self._key(request.key_id).decrypt(request.ciphertext[:12], request.ciphertext[12:], None)
        except InvalidTag:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this is not mine")
        return pb.DecryptResponse(plaintext=plain)
