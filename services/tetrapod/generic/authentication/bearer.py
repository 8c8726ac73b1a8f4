"""Authenticators of bearer tokens in the Authorization header and in a WebSocket subprotocol.

Browsers cannot set the headers of WebSocket requests, so they send the token as a subprotocol.
Upstream: k8s.io/apiserver/pkg/authentication/request/{bearertoken,websocket}. Parsing is as lenient as upstream's:
after two spaces the token is empty (anonymous, with a warning), and text after the token is ignored.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from tetrapod.generic.authentication.interface import Authenticated, InvalidToken, Rejected, TokenAuthenticator
from tetrapod.generic.http.request import Request
from tetrapod.generic.http.websocket import is_websocket_request

INVALID_BEARER_TOKEN: Final = "invalid bearer token"
_EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_PROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
_UNKNOWN: Final = Rejected((INVALID_BEARER_TOKEN,))
_REVIEWED: Final = f"[{INVALID_BEARER_TOKEN}, "
"""The beginning of errors in the TokenReviews of kube-apiserver and of the auth service."""


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

    It returns None without a token, and `Rejected` for a token that `tokens` rejects or does not know. It does not
    remove the header.

    The first error of a rejection is always "invalid bearer token". In kube-apiserver it is that of the authenticator
    of the server's own token, which is asked first.
    Upstream: staging/src/k8s.io/apiserver/pkg/server/config.go, AuthorizeClientBearerToken

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
        result = await _accept(self._tokens, token, self._audiences)  # the authentication filter removes the header
        if isinstance(result, Rejected) and not result.errors[0].startswith(_REVIEWED):
            return Rejected((INVALID_BEARER_TOKEN, *result.errors))
        return result


class WebSocketAuthenticator:
    """The authenticator of bearer tokens in the Sec-WebSocket-Protocol header of WebSocket requests.

    The subprotocol of the token is `base64url.bearer.authorization.k8s.io.TOKEN`. Once the token is accepted, it is
    removed from the request.

    The authenticator returns None for other requests and for those without a token. It returns `Rejected` if `tokens`
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
        try:
            token = _decode(carriers[0].removeprefix(_PROTOCOL_PREFIX)) if carriers else ""
        except ValueError as error:
            return Rejected((str(error),))
        if len(carriers) > 1:
            return Rejected(("multiple base64.bearer.authorization tokens specified",))
        if not token:
            return None
        if not others:
            return Rejected(("missing additional subprotocol",))
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


def _decode(encoded: str) -> str:
    """Decode a token from unpadded base64url.

    Raises:
        ValueError: it is malformed or not UTF-8. The text is upstream's.
    """
    try:
        if "=" in encoded or "+" in encoded or "/" in encoded:  # unpadded base64url only
            raise binascii.Error("padded or of the other alphabet")
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("invalid base64.bearer.authorization token encoding") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("invalid base64.bearer.authorization token") from None


async def _accept(tokens: TokenAuthenticator, token: str, audiences: tuple[str, ...]) -> Authenticated | Rejected:
    try:
        return await tokens.authenticate_token(token, audiences) or _UNKNOWN
    except InvalidToken as error:
        return Rejected((str(error),))
