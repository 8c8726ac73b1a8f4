"""An OpenID Connect provider over TLS with real keys: discovery, a key set, and ID tokens with arbitrary claims."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from support.webhook import Answer, WebhookServer, webhook_server

AUDIENCE = "kubernetes"


class Issuer:
    def __init__(self, server: WebhookServer) -> None:
        self.server = server
        self.keys: dict[str, tuple[Any, str]] = {}
        self.cache_control = ""
        self.add_key("one")
        self.discovery: dict[str, Any] = {"issuer": self.url, "jwks_uri": f"{server.url}/keys"}
        server.on("/.well-known/openid-configuration", lambda _: self.discovery)
        server.on("/keys", self._answer_keys)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def ca(self) -> str:
        return self.server.authority.certificate_pem.decode()

    @property
    def fetches(self) -> int:
        """How many times the key set has been fetched."""
        return sum(path == "GET /keys" for path, _, _ in self.server.seen)

    def add_key(self, name: str, algorithm: str = "RS256") -> None:
        made: Any = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        if algorithm.startswith("ES"):
            made = ec.generate_private_key(
                {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}[algorithm]
            )
        self.keys[name] = (made, algorithm)

    def jwk(self, name: str) -> dict[str, Any]:
        key, algorithm = self.keys[name]
        make = ECAlgorithm if algorithm.startswith("ES") else RSAAlgorithm
        return {**make.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"}

    def _answer_keys(self, _: Any) -> Any:
        import json

        headers = {"content-type": "application/json"} | (
            {"cache-control": self.cache_control} if self.cache_control else {}
        )
        return Answer(body=json.dumps({"keys": [self.jwk(name) for name in self.keys]}).encode(), headers=headers)

    def claims(self, **more: Any) -> dict[str, Any]:
        """Return the claims of a valid token, overridden by `more`; a claim of None is removed."""
        now = int(time.time())
        base = {"iss": self.url, "aud": AUDIENCE, "sub": "jane", "iat": now, "exp": now + 600}
        return {name: value for name, value in {**base, **more}.items() if value is not None}

    def token(self, key: str = "one", headers: dict[str, Any] | None = None, **claims: Any) -> str:
        signing, algorithm = self.keys[key]
        return jwt.encode(self.claims(**claims), signing, algorithm, headers={"kid": key, **(headers or {})})


@contextlib.contextmanager
def issuer() -> Iterator[Issuer]:
    with webhook_server() as server:
        yield Issuer(server)
