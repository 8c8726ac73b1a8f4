"""URLs as Go's net/url parses them, with its error texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from tetrapod.machinery.golang.ip_addresses import address_error
from tetrapod.machinery.golang.quoting import go_quote

_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST_CHARS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\"")
_NOT_PLAIN: Final = re.compile(rf"%(.{{0,2}})|[^{re.escape(''.join(sorted(_HOST_CHARS)))}\x80-\U0010ffff]")
"""An escape in a host, or a character that hosts must not have."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+\-.]*")
_PATH_SAFE: Final = "$&+,/:;=@"
_VALID_ENCODED: Final = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/]|%[0-9A-Fa-f]{2})*", re.ASCII)


class BadUrl(ValueError):
    """The error for an invalid URL. The text is Go's without its prefix `parse "…": `."""


@dataclass
class GoUrl:
    """A parsed URL. Parts that it does not have are "". `str()` returns it as Go writes it.

    Attributes:
        scheme: the scheme in lower case.
        opaque: the text after the scheme of a URL like `mailto:a@b`.
        user: the user information before `@`.
        host: the host with its port, without escapes.
        path: the path without escapes.
        raw_path: the path as it was written.
        query: the raw query without `?`.
        fragment: the fragment without `#` and escapes.
        force_query: whether the URL ends with `?`.

    Upstream: Go's net/url, URL.
    """

    scheme: str = ""
    opaque: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str = ""
    fragment: str = ""
    force_query: bool = field(default=False)

    @property
    def hostname(self) -> str:
        """Return the host without port and brackets."""
        host = self.host.rpartition(":")[0] if _has_port(self.host) else self.host
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    @property
    def port(self) -> str:
        """Return the port, or "" if the URL has none."""
        return self.host.rpartition(":")[2] if _has_port(self.host) else ""

    @property
    def escaped_path(self) -> str:
        """Return the path with escapes: as it was written if that is a valid encoding, else newly encoded.

        Upstream: URL.EscapedPath.
        """
        if self.raw_path and _VALID_ENCODED.fullmatch(self.raw_path) and _unescaped(self.raw_path) == self.path:
            return self.raw_path
        return "*" if self.path == "*" else quote(self.path, safe=_PATH_SAFE)

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            if self.scheme or self.host or self.user:
                if self.host or self.path or self.user:
                    text += "//"
                text += f"{self.user}@" if self.user else ""
                text += quote(self.host, safe="!$&'()*+,;=:[]<>\"")
            path = self.escaped_path
            text += f"/{path}" if path and not path.startswith("/") and self.host else path
        if self.force_query or self.query:
            text += f"?{self.query}"
        return text + (f"#{quote(self.fragment, safe=_PATH_SAFE + '!?')}" if self.fragment else "")


def parse_request_uri(text: str) -> GoUrl:
    """Parse a URL as url.ParseRequestURI does, for which `#` has no meaning.

    Raises:
        BadUrl: the text is not a URL; with Go's text.
    """
    return _parse(text, request=True)


def request_uri_error(text: str) -> str:
    """Return Go's error text for a text that url.ParseRequestURI rejects, or "" if it accepts the text."""
    try:
        parse_request_uri(text)
    except BadUrl as error:
        return f"parse {go_quote(text)}: {error}"
    return ""


def url_error(text: str) -> str:
    """Return Go's error text for a text that url.Parse rejects, or "" if it accepts the text."""
    try:
        parse(text)
    except BadUrl as error:
        return f"parse {go_quote(text)}: {error}"
    return ""


def parse(text: str) -> GoUrl:
    """Parse a URL as url.Parse does.

    Raises:
        BadUrl: the text is not a URL; with Go's text.
    """
    rest, mark, fragment = text.partition("#")
    url = _parse(rest, request=False)
    if mark:
        _check_escapes(fragment)
        url.fragment = _unescaped(fragment)
    return url


def query_values(query: str) -> dict[str, list[str]]:
    """Return all values of each parameter of a raw query, decoded, by the decoded name, as URL.Query does.

    Invalid parameters are ignored.
    """
    values: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if not pair or ";" in pair or _ESCAPE.search(pair):
            continue
        key, _, value = pair.replace("+", " ").partition("=")
        values.setdefault(_unescaped(key), []).append(_unescaped(value))
    return values


def _parse(text: str, *, request: bool) -> GoUrl:
    if _CONTROL.search(text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text and request:
        raise BadUrl("empty url")
    url = GoUrl()
    if text == "*":
        url.path = "*"
        return url
    url.scheme, rest = _scheme(text)
    if rest.endswith("?") and rest.count("?") == 1:
        url.force_query, rest = True, rest[:-1]
    else:
        rest, _, url.query = rest.partition("?")
    if not rest.startswith("/"):
        if url.scheme:
            url.opaque = rest
            return url
        if request:
            raise BadUrl("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise BadUrl("first path segment in URL cannot contain colon")
    if (url.scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        url.user, url.host = _authority(url.scheme, authority)
    _check_escapes(rest)
    url.path = _unescaped(rest)
    url.raw_path = rest
    return url


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise BadUrl("missing protocol scheme")
    scheme = _SCHEME.match(text)
    if scheme is None or not text.startswith(":", scheme.end()):
        return "", text
    return scheme[0].lower(), text[scheme.end() + 1 :]


def _authority(scheme: str, text: str) -> tuple[str, str]:
    user, at, rest = text.rpartition("@")
    host = _host(scheme, rest)
    if at:
        if not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user):
            raise BadUrl("net/url: invalid userinfo")
        _check_escapes(user)
    return user, host


def _host(scheme: str, host: str) -> str:
    """Return the host of a URL without escapes, including its port.

    The host is a name, or an IPv6 address in brackets with an optional zone after "%25".

    Args:
        scheme: the scheme of the URL. With "http" and "https", all text after the first colon must be the port.
        host: the host with its port.

    Raises:
        BadUrl: the host is invalid.
    """
    bracket = host.rfind("[")
    if bracket > 0:
        raise BadUrl("invalid IP-literal")
    if bracket == 0:
        name, closed, port = host[1:].rpartition("]")
        if not closed:
            raise BadUrl("missing ']' in host")
        _check_port(port)
        address, mark, zone = name.partition("%25")
        literal = _unescaped_host(address) + _unescaped_host(mark + zone, zone=True)
        if message := address_error(literal):
            raise BadUrl(f"invalid host: {message}")
        if ":" not in literal:
            raise BadUrl("invalid IP-literal")
        return f"[{literal}]{port}"
    if ":" in host:
        # other schemes, such as those of databases, allow several hosts with ports
        strict = scheme in ("http", "https")
        _check_port(host[host.find(":") if strict else host.rfind(":") :])
    return _unescaped_host(host)


def _unescaped_host(host: str, *, zone: bool = False) -> str:
    """Return a host without escapes.

    Only characters outside of ASCII may be escaped; in a zone also a space and characters valid in hosts.

    Args:
        host: the host, or a part of it.
        zone: whether it is the zone of an IPv6 address.

    Raises:
        BadUrl: the host has a character or an escape that is not allowed.
    """
    for match in _NOT_PLAIN.finditer(host):
        if match[1] is not None:
            code = int(match[1], 16) if re.fullmatch("[0-9A-Fa-f]{2}", match[1]) else -1
            allowed = code == 0x25 or (
                code == 0x20 or code >= 0x80 or chr(code) in _HOST_CHARS if zone else code >= 0x80
            )
            if code < 0 or not allowed:
                raise BadUrl(f"invalid URL escape {go_quote(match[0])}")
        else:
            raise BadUrl(f"invalid character {go_quote(match[0])} in host name")
    return _unescaped(host)


def _check_port(text: str) -> None:
    if text and not (text[0] == ":" and (not text[1:] or (text[1:].isascii() and text[1:].isdigit()))):
        raise BadUrl(f"invalid port {go_quote(text)} after host")


def _check_escapes(text: str) -> None:
    if match := _ESCAPE.search(text):
        raise BadUrl(f"invalid URL escape {go_quote(text[match.start() : match.start() + 3])}")


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace") if "%" in text else text


def _has_port(host: str) -> bool:
    _, colon, port = host.rpartition(":")
    return bool(colon) and (not port or port.isdigit()) and not host.endswith("]")
