"""A plugin that signs service account tokens, built with grpcio, the library of real plugins."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import grpc
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.grpc_plugin import start_plugin
from tetrapod.auth.tokens.external import external_pb2 as pb

SERVICE = "v1.ExternalJWTSigner"


class TokenSigner:
    """A plugin that listens on the Unix socket `socket`, or on the abstract socket `abstract` if that is not empty.

    Attributes:
        keys: the private keys by ID. The token is signed with `signing`.
        hidden: the IDs of keys that are excluded from OIDC discovery.
        max_lifetime: the longest lifetime, in seconds.
        refresh: the hint when to fetch the keys again, in seconds.
        timestamp: the seconds since the epoch of the keys; None leaves it out.
        header: further members of the header, or other values.
        rejection: the message of an error with which it answers Sign; "" for none.
        signed: the claims that it has signed.
    """

    def __init__(self, socket: Path, *, abstract: str = "") -> None:
        self.address = f"unix-abstract:{abstract}" if abstract else f"unix:{socket}"
        self.endpoint = f"@{abstract}" if abstract else str(socket)
        self._first = ec.generate_private_key(ec.SECP256R1())
        self.max_lifetime, self.refresh = 7200, 600
        self.timestamp: int | None = int(time.time())
        self.signed: list[Any] = []
        self._server: grpc.Server | None = None
        self.restore()

    def restore(self) -> None:
        """Sign valid tokens with the first key again, and forget the other keys."""
        self.keys = {"first": self._first}
        self.signing = "first"
        self.hidden: set[str] = set()
        self.header: dict[str, Any] = {}
        self.rejection = ""

    def add_key(self, key_id: str) -> None:
        self.keys[key_id] = ec.generate_private_key(ec.SECP256R1())

    def __enter__(self) -> TokenSigner:
        methods = {
            "Sign": (self._sign, pb.SignJWTRequest),
            "FetchKeys": (self._fetch, pb.FetchKeysRequest),
            "Metadata": (self._metadata, pb.MetadataRequest),
        }
        self._server = start_plugin(self.address, SERVICE, methods)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.stop(None).wait()

    def _sign(self, request: pb.SignJWTRequest, context: Any) -> pb.SignJWTResponse:
        if self.rejection:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, self.rejection)
        self.signed.append(json.loads(base64.urlsafe_b64decode(request.claims + "==")))
        header = _b64(json.dumps({"alg": "ES256", "kid": self.signing, "typ": "JWT", **self.header}).encode())
        key = self.keys[self.signing]
        signature = jwt.get_algorithm_by_name("ES256").sign(f"{header}.{request.claims}".encode(), key)
        return pb.SignJWTResponse(header=header, signature=_b64(signature))

    def _fetch(self, request: pb.FetchKeysRequest, context: Any) -> pb.FetchKeysResponse:
        keys = [
            pb.Key(key_id=key_id, key=_public(key), exclude_from_oidc_discovery=key_id in self.hidden)
            for key_id, key in self.keys.items()
        ]
        stamp = pb.Timestamp(seconds=self.timestamp) if self.timestamp is not None else None
        return pb.FetchKeysResponse(keys=keys, data_timestamp=stamp, refresh_hint_seconds=self.refresh)

    def _metadata(self, request: pb.MetadataRequest, context: Any) -> pb.MetadataResponse:
        return pb.MetadataResponse(max_token_expiration_seconds=self.max_lifetime)


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
