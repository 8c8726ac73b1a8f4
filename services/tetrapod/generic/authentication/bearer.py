"""Authenticators of bearer tokens in the Authorization header and in a WebSocket subprotocol.

Browsers cannot set the headers of WebSocket requests, so they send the token as a subprotocol.
Upstream: k8s.io/apiserver/pkg/authentication/request/{bearertoken,websocket}. Parsing is as lenient as upstream's:
after two spaces the token is empty (anonymous, with a warning), and text after the token is ignored.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from tetrapod.generic.authentication.interface import (
    REJECTED,
    Authenticated,
    InvalidToken,
    Rejected,
    TokenAuthenticator,
)
from tetrapod.generic.http.request import Request
from tetrapod.generic.http.websocket import is_websocket_request

INVALID_BEARER_TOKEN: Final = "invalid bearer token"
_EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_PROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."


def bearer_token(header: str) -> tuple[str, str]:
    """Return the token in the value of an Authorization header, and a warning for the client.

    The token is "" if the scheme is not Bearer or the token is empty. The warning is "" unless a second space precedes
    the token.
    """
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return "", ""
    if not parts[1]:
        return "", _EXTRA_SPACE if len(parts) == 3 else ""
    return parts[1], ""


class BearerAuthenticator:
    """The authenticator of bearer tokens in the Authorization header.

    It returns None without a token, and `REJECTED` for a token that `tokens` rejects or does not know. It does not
    remove the header.

    Args:
        tokens: the authenticator of the token.
        audiences: the audiences that the token must be valid for; empty for the default of `tokens`.
    """

    def __init__(self, tokens: TokenAuthenticator, audiences: tuple[str, ...] = ()) -> None:
        self._tokens = tokens
        self._audiences = audiences

    async def authenticate(self, request: Request) -> Authenticated | Rejected | None:
        token, warning = bearer_token(utf8(request.header(b"authorization")))
        if warning:
            request.warnings.append(warning)
        if not token:
            return None
        return await _accept(self._tokens, token, self._audiences)  # the authentication filter removes the header


class WebSocketAuthenticator:
    """The authenticator of bearer tokens in the Sec-WebSocket-Protocol header of WebSocket requests.

    The subprotocol of the token is `base64url.bearer.authorization.k8s.io.TOKEN`. Once the token is accepted, it is
    removed from the request.

    The authenticator returns None for other requests and for those without a token. It returns `REJECTED` if `tokens`
    rejects or does not know the token, or if the request offers no other subprotocol, several tokens, or a malformed
    token.

    Args:
        tokens: the authenticator of the token.
        audiences: the audiences that the token must be valid for; empty for the default of `tokens`.
    """

    def __init__(self, tokens: TokenAuthenticator, audiences: tuple[str, ...] = ()) -> None:
        self._tokens = tokens
        self._audiences = audiences

    async def authenticate(self, request: Request) -> Authenticated | Rejected | None:
        if not is_websocket_request(request.headers):
            return None
        offered = [p.strip() for value in request.header_values(b"sec-websocket-protocol") for p in value.split(",")]
        carriers = [p for p in offered if p.startswith(_PROTOCOL_PREFIX)]
        others = [p for p in offered if not p.startswith(_PROTOCOL_PREFIX)]
        if len(carriers) > 1:
            return REJECTED
        token = _decode(carriers[0].removeprefix(_PROTOCOL_PREFIX)) if carriers else ""
        if token == "":
            return None
        if token is None or not others:
            return REJECTED
        result = await _accept(self._tokens, token, self._audiences)
        if isinstance(result, Rejected):
            return result
        request.headers = [header for header in request.headers if header[0] != b"sec-websocket-protocol"]
        request.headers.append((b"sec-websocket-protocol", ",".join(others).encode("latin-1")))
        return result


def utf8(header: str) -> str:
    """Decode a value that `Request.header` returned, which has one character for each byte, as UTF-8.

    Invalid bytes become U+FFFD.
    """
    return header if header.isascii() else header.encode("latin-1").decode("utf-8", "replace")


def _decode(encoded: str) -> str | None:
    """Decode a token from unpadded base64url. Return None if it is malformed or not UTF-8."""
    if "=" in encoded or "+" in encoded or "/" in encoded:  # unpadded base64url only
        return None
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        return raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


async def _accept(tokens: TokenAuthenticator, token: str, audiences: tuple[str, ...]) -> Authenticated | Rejected:
    try:
        return await tokens.authenticate_token(token, audiences) or REJECTED
    except InvalidToken:
        return REJECTED
