"""Bearer tokens in the Authorization header, and in a WebSocket subprotocol (browsers cannot set headers there).

Upstream: k8s.io/apiserver/pkg/authentication/request/{bearertoken,websocket}. Parsing is as lenient as there: two spaces
make the token empty (anonymous, with a warning), what follows the token is not looked at.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from tetrapod.generic.authentication.interface import Authenticated, InvalidToken, TokenAuthenticator
from tetrapod.generic.request import Request
from tetrapod.machinery.status import unauthorized

INVALID_BEARER_TOKEN: Final = "invalid bearer token"
_EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_PROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."


def bearer_token(header: str) -> tuple[str, str]:
    """The token in an Authorization header ("" where there is none) and a warning ("" where there is none)."""
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return "", ""
    if not parts[1]:
        return "", _EXTRA_SPACE if len(parts) == 3 else ""
    return parts[1], ""


class BearerAuthenticator:
    def __init__(self, tokens: TokenAuthenticator, audiences: tuple[str, ...] = ()) -> None:
        self._tokens = tokens
        self._audiences = audiences

    async def authenticate(self, request: Request) -> Authenticated | None:
        token, warning = bearer_token(utf8(request.header(b"authorization")))
        if warning:
            request.warnings.append(warning)
        if not token:
            return None
        return await _accepted(self._tokens, token, self._audiences)  # the authentication filter drops the header


class WebSocketAuthenticator:
    """The subprotocol that carries the token is taken out of the request; another one must remain."""

    def __init__(self, tokens: TokenAuthenticator, audiences: tuple[str, ...] = ()) -> None:
        self._tokens = tokens
        self._audiences = audiences

    async def authenticate(self, request: Request) -> Authenticated | None:
        if not _is_websocket(request):
            return None
        offered = [p.strip() for value in request.header_values(b"sec-websocket-protocol") for p in value.split(",")]
        carriers = [p for p in offered if p.startswith(_PROTOCOL_PREFIX)]
        others = [p for p in offered if not p.startswith(_PROTOCOL_PREFIX)]
        if len(carriers) > 1:
            raise unauthorized()
        token = _decoded(carriers[0].removeprefix(_PROTOCOL_PREFIX)) if carriers else ""
        if not token:
            return None
        if not others:
            raise unauthorized()
        result = await _accepted(self._tokens, token, self._audiences)
        request.headers = [header for header in request.headers if header[0] != b"sec-websocket-protocol"]
        request.headers.append((b"sec-websocket-protocol", ",".join(others).encode("latin-1")))
        return result


def utf8(header: str) -> str:
    """A header value as its sender wrote it (`Request.header` reads every byte as one character)."""
    return header if header.isascii() else header.encode("latin-1").decode("utf-8", "replace")


def _is_websocket(request: Request) -> bool:
    return "upgrade" in request.header(b"connection").lower() and request.header(b"upgrade").lower() == "websocket"


def _decoded(encoded: str) -> str:
    if "=" in encoded or "+" in encoded or "/" in encoded:  # raw URL encoding only
        raise unauthorized()
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        return raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise unauthorized() from error


async def _accepted(tokens: TokenAuthenticator, token: str, audiences: tuple[str, ...]) -> Authenticated:
    try:
        result = await tokens.authenticate_token(token, audiences)
    except InvalidToken as error:
        raise unauthorized() from error
    if result is None:
        raise unauthorized()
    return result
