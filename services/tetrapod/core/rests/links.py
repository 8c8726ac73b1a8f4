"""Links that lead back through the proxy: in Location headers, and in pages of HTML.

Upstream: k8s.io/apimachinery/pkg/util/proxy/transport.go. What is not a start tag is passed on byte by byte; start tags are written as
golang.org/x/net/html writes them.
"""

from __future__ import annotations

import gzip
import html
import posixpath
import re
import zlib
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

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
_RAW: Final = frozenset({"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "title", "textarea", "xmp"})
"""Tags whose text is no markup."""
_MARKUP: Final = re.compile(r"<(?:(?P<tag>[a-zA-Z][^\s/>]*+)|(?P<comment>!--)|[!?/])")
_REST: Final = re.compile(r"""(?:[^>=]|=\s*+(?:"[^"]*+"|'[^']*+')?)*+>""")
"""Of a start tag, to its end: quotes mean something after a = only."""
_ATTRIBUTE: Final = re.compile(r"""([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']*+)))?""")
_BAD_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")


class Links:
    """`prefix` is what the path of the request begins with, up to the proxied one; `host` is the backend's, `asked` the client's."""

    def __init__(self, prefix: str, host: str, asked: str) -> None:
        self._prefix, self._host, self._asked = prefix, host, asked

    def rewrite(self, link: str) -> str:
        try:
            parts = urlsplit(link)
        except ValueError:
            return link
        if _BAD_ESCAPE.search(link) or parts.netloc not in ("", self._host, self._asked) or not parts.path.startswith("/"):
            return link
        if parts.netloc != self._asked:
            parts = parts._replace(scheme="", netloc="")
        path = parts.path
        if not path.startswith(self._prefix):
            slash = "/" if path.endswith("/") else ""
            path = posixpath.normpath(self._prefix + path).removesuffix("/") + slash
        return parts._replace(path=path).geturl()

    def page(self, body: bytes, encoding: str) -> bytes | None:
        """A page of HTML with its links rewritten; None where it is encoded in a way that nobody knows here.

        Raises:
            ValueError: it is not encoded as it says.
        """
        codec = _CODECS.get(encoding)
        if codec is None:
            return None
        decode, encode = codec
        try:
            text = decode(body).decode("utf-8", "surrogateescape")
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(str(error)) from error
        return encode(self._rewritten(text).encode("utf-8", "surrogateescape"))

    def _rewritten(self, text: str) -> str:
        out, at = [], 0
        while (found := _MARKUP.search(text, at)) is not None:
            tag, after = (found["tag"] or "").lower(), found.end()
            if not tag:
                closing = "-->" if found["comment"] else ">"
                end = text.find(closing, after)
                stop = end + len(closing) if end >= 0 else len(text)
                out.append(text[at:stop])
                at = stop
                continue
            rest = _REST.match(text, after)
            if rest is None:  # it has no end: nothing after it is markup
                break
            out += (text[at : found.start()], self._start_tag(tag, rest[0][:-1]))
            at = rest.end()
            if tag in _RAW:
                end_tag = re.compile(rf"</{re.escape(tag)}(?=[\s/>])", re.IGNORECASE).search(text, at)
                stop = end_tag.start() if end_tag is not None else len(text)
                out.append(text[at:stop])
                at = stop
        out.append(text[at:])
        return "".join(out)

    def _start_tag(self, tag: str, rest: str) -> str:
        links = _ATTRIBUTES.get(tag, frozenset())
        written = [f"<{tag}"]
        closed = rest.endswith("/")
        for found in _ATTRIBUTE.finditer(rest):
            name, double, single, bare = found.groups("")
            closed = closed and not (bare and found.end() == len(rest))
            value = html.unescape(double or single or bare)
            if name.lower() in links:
                value = self.rewrite(value)
            written.append(f' {name.lower()}="{_escaped(value)}"')
        return "".join(written) + ("/>" if closed else ">")


def _escaped(text: str) -> str:
    """As Go's html.EscapeString."""
    for old, new in (("&", "&amp;"), ("'", "&#39;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;"), ("\r", "&#13;")):
        text = text.replace(old, new)
    return text


def _same(data: bytes) -> bytes:
    return data


def _inflated(data: bytes) -> bytes:
    return zlib.decompress(data, -zlib.MAX_WBITS)


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


_CODECS: Final[dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]] = {
    "": (_same, _same),
    "gzip": (gzip.decompress, gzip.compress),
    "deflate": (_inflated, _deflated),
}
