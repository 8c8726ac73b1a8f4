"""Functions of URLs. Upstream: apiserver/pkg/cel/library/urls.go."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.cel.values import Special
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.golang.urls import BadUrl, GoUrl, parse, query_values, request_uri_error


class Url(Special):
    """A URL: the value of `url('https://example.com/')`."""

    cel_type = types.object_type("kubernetes.URL")

    def __init__(self, url: GoUrl) -> None:
        self.url = url

    def equals(self, other: Any) -> bool:
        return isinstance(other, Url) and str(other.url) == str(self.url)


def _url(text: str) -> Url:
    message = request_uri_error(text)
    if not message:
        try:
            return Url(parse(text))
        except BadUrl as error:
            message = f"parse {go_quote(text)}: {error}"
    raise EvaluationError(f"URL parse error during conversion from string: {message}")


FUNCTIONS: Final[Functions] = {
    "url": [((str,), _url)],
    "isURL": [((str,), lambda text: not request_uri_error(text))],
    "getScheme": [((Url,), lambda u: u.url.scheme)],
    "getHost": [((Url,), lambda u: u.url.host)],
    "getHostname": [((Url,), lambda u: u.url.hostname)],
    "getPort": [((Url,), lambda u: u.url.port)],
    "getEscapedPath": [((Url,), lambda u: u.url.escaped_path)],
    "getQuery": [((Url,), lambda u: query_values(u.url.query))],
}
