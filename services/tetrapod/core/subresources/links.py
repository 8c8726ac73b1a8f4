"""Rewriting of links in proxied responses, in Location headers and HTML pages.

The rewritten links lead back through the proxy. Everything but start tags is copied unchanged; start tags are written
as golang.org/x/net/html writes them.
Upstream: k8s.io/apimachinery/pkg/util/proxy/transport.go.
"""

from __future__ import annotations

import gzip
import html
import io
import posixpath
import re
import zlib
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

MAX_PAGE: Final = 4 << 20
"""Bytes up to which a page, decoded, is rewritten. A MiB of tags takes 0.6 s; longer pages are passed on unchanged."""
_ATTRIBUTES: Final[dict[str, frozenset[str]]] = {
    tag: frozenset(names.split())
    for tag, names in {
        "a": "href",
        "applet": "codebase",
        "area": "href",
        "audio": "src",
        "base": "href",
        "blockquote": "cite",
        "body": "background",
        "button": "formaction",
        "command": "icon",
        "del": "cite",
        "embed": "src",
        "form": "action",
        "frame": "longdesc src",
        "head": "profile",
        "html": "manifest",
        "iframe": "longdesc src",
        "img": "longdesc src usemap",
        "input": "src usemap formaction",
        "ins": "cite",
        "link": "href",
        "object": "classid codebase data usemap",
        "q": "cite",
        "script": "src",
        "source": "src",
        "video": "poster src",
    }.items()
}
_RAW: Final = frozenset(
    {"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "title", "textarea", "xmp"}
)
"""Tags whose content is text, not markup."""
_MARKUP: Final = re.compile(r"<(?:(?P<tag>[a-zA-Z][^\s/>]*+)|(?P<comment>!--)|[!?/])")
_REST: Final = re.compile(r"""(?:[^>=]|=\s*+(?:"[^"]*+"|'[^']*+')?)*+>""")
"""The rest of a start tag. Quotes are special only after `=`."""
_ATTRIBUTE: Final = re.compile(r"""([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']*+)))?""")
_BAD_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")


class Links:
    """A rewriter of links in the responses to one proxied request.

    Args:
        prefix: the path of the request up to the proxied path.
        host: the authority (host and port) of the backend.
        client_host: the Host header of the client.
    """

    def __init__(self, prefix: str, host: str, client_host: str) -> None:
        self._prefix, self._host, self._client_host = prefix, host, client_host

    def rewrite(self, link: str) -> str:
        """Return a link of the page in the form that leads through the proxy.

        This applies to absolute paths without a host, and to links to the backend or to the host of the request. Other
        links are returned unchanged.
        """
        try:
            parts = urlsplit(link)
        except ValueError:
            return link
        if (
            _BAD_ESCAPE.search(link)
            or parts.netloc not in ("", self._host, self._client_host)
            or not parts.path.startswith("/")
        ):
            return link
        if parts.netloc != self._client_host:
            parts = parts._replace(scheme="", netloc="")
        path = parts.path
        if not path.startswith(self._prefix):
            slash = "/" if path.endswith("/") else ""
            path = posixpath.normpath(self._prefix + path).removesuffix("/") + slash
        return parts._replace(path=path).geturl()

    def page(self, body: bytes, encoding: str) -> bytes | None:
        """Return an HTML page with rewritten links, in the same encoding.

        Args:
            body: the encoded page.
            encoding: the value of Content-Encoding.

        Returns:
            None if the encoding is not supported, or the decoded page is longer than `MAX_PAGE`.

        Raises:
            ValueError: the body does not have this encoding.
        """
        codec = _CODECS.get(encoding)
        if codec is None:
            return None
        decode, encode = codec
        try:
            decoded = decode(body)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(str(error)) from error
        if len(decoded) > MAX_PAGE:
            return None
        text = decoded.decode("utf-8", "surrogateescape")
        return encode(self._rewritten(text).encode("utf-8", "surrogateescape"))

    def _rewritten(self, text: str) -> str:
        out, position = [], 0
        while (markup := _MARKUP.search(text, position)) is not None:
            tag, name_end = (markup["tag"] or "").lower(), markup.end()
            if not tag:
                closing = "-->" if markup["comment"] else ">"
                end = text.find(closing, name_end)
                stop_position = end + len(closing) if end >= 0 else len(text)
                out.append(text[position:stop_position])
                position = stop_position
                continue
            attributes = _REST.match(text, name_end)
            if attributes is None:  # an unterminated tag: the remainder is not markup
                break
            out += (text[position : markup.start()], self._start_tag(tag, attributes[0][:-1]))
            position = attributes.end()
            if tag in _RAW:
                end_tag = re.compile(rf"</{re.escape(tag)}(?=[\s/>])", re.IGNORECASE).search(text, position)
                stop_position = end_tag.start() if end_tag is not None else len(text)
                out.append(text[position:stop_position])
                position = stop_position
        out.append(text[position:])
        return "".join(out)

    def _start_tag(self, tag: str, rest: str) -> str:
        links = _ATTRIBUTES.get(tag, frozenset())
        output = [f"<{tag}"]
        closed = rest.endswith("/")
        for attribute in _ATTRIBUTE.finditer(rest):
            name, double, single, bare = attribute.groups("")
            closed = closed and not (bare and attribute.end() == len(rest))
            value = html.unescape(double or single or bare)
            if name.lower() in links:
                value = self.rewrite(value)
            output.append(f' {name.lower()}="{_escaped(value)}"')
        return "".join(output) + ("/>" if closed else ">")


def _escaped(text: str) -> str:
    """Escape text for HTML as Go's html.EscapeString does."""
    for old, new in (("&", "&amp;"), ("'", "&#39;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;"), ("\r", "&#13;")):
        text = text.replace(old, new)
    return text


def _same(data: bytes) -> bytes:
    return data


def _gunzipped(data: bytes) -> bytes:
    return gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_PAGE + 1)


def _inflated(data: bytes) -> bytes:
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)
    page = decoder.decompress(data, MAX_PAGE + 1)
    if len(page) <= MAX_PAGE and not decoder.eof:
        raise zlib.error("incomplete or truncated stream")
    return page


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


_CODECS: Final[dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]] = {
    "": (_same, _same),
    "gzip": (_gunzipped, gzip.compress),
    "deflate": (_inflated, _deflated),
}
