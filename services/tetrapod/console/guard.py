"""The checks that let only a browser on this machine use the console, opened with the printed address.

The console holds the credentials of a kubeconfig. Other users of the machine, other web sites in the same browser, and
names that resolve to this machine (DNS rebinding) must not reach it:

- The address contains a token. The first request with it gets a cookie, which all others need.
- The Host header must name the loopback address, which a rebound name does not.
- Requests that other sites cause are rejected by Sec-Fetch-Site and Origin, and the cookie is SameSite=Strict. Pages of
  other ports of this machine are the same site, but another origin.
- Only GET and HEAD are accepted.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The Content-Security-Policy of all responses that have none of their own."""
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """An ASGI application that passes permitted requests on to another.

    Args:
        app: the other application.
        port: the port of the console.
        token: the token in the printed address.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._token = token
        self._cookie = f"tetrapod-console-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            raise RuntimeError(f"the console does not serve {scope['type']}")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._rejection(scope) or self._app
        await app(scope, receive, send_with_headers)

    def _rejection(self, scope: Scope) -> Response | None:
        """Return the response to a request that is not passed on; None to pass it on."""
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self._hosts:
            return PlainTextResponse("The console answers to 127.0.0.1 and localhost only.\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("The console only reads.\n", 405, {"allow": "GET, HEAD"})
        if not self._is_own(scope, headers):
            return PlainTextResponse("Another site caused this request.\n", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and self._is_token(given):
            response = RedirectResponse("/", 303)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response
        if not self._is_token(self._cookie_of(headers)):
            return PlainTextResponse("Open the address that `tetrapod console` has printed.\n", 401)
        return None

    def _is_own(self, scope: Scope, headers: Headers) -> bool:
        """Return whether our page, or the user, caused the request.

        The user may follow a link to the first page from elsewhere, such as a terminal in a web page.
        """
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return False
        site = headers.get("sec-fetch-site", "none")
        navigation = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site in ("same-origin", "none") or (scope["path"] == "/" and navigation)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _cookie_of(self, headers: Headers) -> str:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        return cookies[self._cookie].value if self._cookie in cookies else ""
