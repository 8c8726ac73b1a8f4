"""`ExternalSigner`: service account tokens that a plugin signs.

Upstream: pkg/serviceaccount/externaljwt/plugin/plugin.go
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import orjson

from tetrapod.auth.tokens.external import external_pb2 as pb
from tetrapod.auth.tokens.external import metrics
from tetrapod.auth.tokens.external.client import SignerClient, SignerError
from tetrapod.auth.tokens.external.key_cache import KeyCache
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.status import internal_error

_TIMEOUT: Final = 60.0
_ALGORITHMS: Final = frozenset({"RS256", "ES256", "ES384", "ES512"})
_FIELDS: Final = ("alg", "kid", "typ")
_LONGEST_ID: Final = 1024


class ExternalSigner:
    """The signer of tokens by a plugin; a `Signer`.

    Attributes:
        keys: the plugin's public keys.
        max_lifetime: the longest lifetime of tokens that the plugin supports, in seconds.
    """

    def __init__(self, client: SignerClient, keys: KeyCache, max_lifetime: int) -> None:
        self._client = client
        self.keys = keys
        self.max_lifetime = max_lifetime

    async def sign(self, claims: Mapping[str, Any]) -> str:
        """Return the token with these claims.

        Raises:
            StatusError: 500, the plugin failed or returned an invalid header or signature.
        """
        code = "OK"
        try:
            return await self._signed(claims)
        except SignerError as error:
            code = error.code
            raise internal_error(f"failed to generate token: {error}") from None
        finally:
            metrics.record_signature(code)

    async def _signed(self, claims: Mapping[str, Any]) -> str:
        payload = base64.urlsafe_b64encode(orjson.dumps(claims)).rstrip(b"=").decode()
        try:
            response = await self._client.sign(payload, _TIMEOUT)
        except SignerError as error:
            raise error.within("while signing jwt") from None
        try:
            key_id = _key_id(response)
            for key in await self.keys.find(key_id):
                if not key.published:  # such keys may only verify tokens that were issued formerly
                    raise SignerError(f"key used for signing JWT (kid: {key_id}) is excluded from OIDC discovery docs")
        except SignerError as error:
            raise error.within("while validating header") from None
        if not response.signature:
            raise SignerError("empty signature returned")
        return f"{response.header}.{payload}.{response.signature}"

    def start(self, lifecycle: Lifecycle) -> None:
        """Start the background task that fetches the plugin's keys repeatedly (`KeyCache.run`)."""
        lifecycle.background("external-jwt-keys", self.keys.run())

    async def close(self) -> None:
        """Close the connection to the plugin."""
        await self._client.close()


def _key_id(response: pb.SignJWTResponse) -> str:
    """Check the header of a signed token, and return the ID of its key.

    Raises:
        SignerError: the header is invalid; with upstream's text, but for texts of base64 and of JSON syntax.
    """
    header = _decoded(response.header)
    for name, value in header.items():
        if name not in _FIELDS:
            raise SignerError(f"while parsing header JSON: json: unknown field {go_quote(name)}")
        if not isinstance(value, str | None):
            raise SignerError(f"while parsing header JSON: json: cannot unmarshal the field .{name} into type string")
    key_id: str = header.get("kid") or ""
    if header.get("typ") != "JWT":
        raise SignerError("bad type")
    if not key_id:
        raise SignerError("key id missing")
    if len(key_id.encode()) > _LONGEST_ID:
        raise SignerError("key id longer than 1 kb")
    if (algorithm := header.get("alg") or "") not in _ALGORITHMS:
        raise SignerError(f"bad signing algorithm {go_quote(algorithm)}")
    return key_id


def _decoded(header: str) -> dict[str, Any]:
    try:
        if any(letter in header for letter in "=+/"):
            raise ValueError("illegal base64 data")
        raw = base64.b64decode(header + "=" * (-len(header) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise SignerError(f"while unwrapping header: {error}") from None
    try:
        decoded = orjson.loads(raw)
    except ValueError as error:
        raise SignerError(f"while parsing header JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise SignerError("while parsing header JSON: json: cannot unmarshal the header into a struct")
    return decoded
