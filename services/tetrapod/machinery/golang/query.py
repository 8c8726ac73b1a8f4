"""Query strings of requests, parsed in time linear in their length with small constants.

Upstream: net/url/url.go, ParseQuery and unescape.
"""

from __future__ import annotations

import binascii
import re
from operator import itemgetter
from typing import Final
from urllib.parse import urlencode

MOST_PARAMETERS: Final = 10_000
"""The most parameters of a query.

A longer query is treated as empty: Go 1.26 rejects it (`urlmaxqueryparams`), and its callers ignore the error.
"""
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def unescape(text: bytes) -> bytes:
    """Decode the percent-escapes of a text, all of which must be well-formed; callers check that.

    The C decoder of quoted-printable does the work: `urllib.parse.unquote_to_bytes` takes 60 times as long for many
    escapes in a row.
    """
    return binascii.a2b_qp(text.replace(b"=", b"=3D").replace(b"%", b"="))


def query_pairs(query: str) -> list[tuple[str, str]]:
    """Return all parameters of a raw query as decoded names and values, in order.

    Parameters with a semicolon or a malformed escape are ignored. The result is [] for a query of more than
    MOST_PARAMETERS.
    """
    query = _well_formed(query)
    if "%" not in query and "+" not in query:
        parts = [pair.partition("=") for pair in query.split("&") if pair]
        return [(name, value) for name, _, value in parts]
    raw = [pair.partition(_EQUALS) for pair in _unescaped(query).split(_AND) if pair]
    return [
        (name.decode("utf-8", "replace"), value.replace(_EQUALS, b"=").decode("utf-8", "replace"))
        for name, _, value in raw
    ]


def encoded_query(query: str) -> str:
    """Return a raw query in the form in which Go's url.Values.Encode writes it, sorted by name as bytes.

    Parameters that `query_pairs` ignores are left out.
    """
    pairs = []
    for pair in _well_formed(query).replace("+", " ").encode("utf-8", "surrogatepass").split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            pairs.append((unescape(name), unescape(value)))
    return urlencode(sorted(pairs, key=itemgetter(0)))


def _well_formed(query: str) -> str:
    """Return a raw query without the parameters that Go rejects: "" if there are too many."""
    if query.count("&") >= MOST_PARAMETERS:
        return ""
    if ";" in query or ("%" in query and _BAD_ESCAPE.search(query)):
        return "&".join([pair for pair in query.split("&") if ";" not in pair and not _BAD_ESCAPE.search(pair)])
    return query


_AND: Final = b"\xfe"
_EQUALS: Final = b"\xff"
_NEVER_UTF8: Final = b"%C0"
_LIKE_SEPARATORS: Final = [f"%{high}{low}".encode() for high in "fF" for low in "eEfF"]


def _unescaped(query: str) -> bytes:
    """Return a whole query with its escapes decoded at once, and with `_AND` and `_EQUALS` as separators.

    These two bytes never occur in UTF-8. They replace `&` and `=`, because the decoded text may contain those
    characters. Escapes of these two bytes are replaced by the escape of another byte that never occurs in UTF-8.
    """
    raw = query.replace("+", " ").encode("utf-8", "surrogatepass")
    if b"%f" in raw or b"%F" in raw:
        for escape in _LIKE_SEPARATORS:
            raw = raw.replace(escape, _NEVER_UTF8)
    return unescape(raw.replace(b"&", _AND).replace(b"=", _EQUALS))


class Query:
    """The parameters of one request, parsed from its raw query string."""

    __slots__ = ("_lists", "pairs", "text", "values")

    def __init__(self, query: str) -> None:
        self.text = query
        """The raw query string."""
        self.pairs = query_pairs(query) if query else []
        """All parameters in their order."""
        self.values: dict[str, str] = dict(self.pairs[::-1])
        """The first value of each parameter."""
        self._lists: dict[str, list[str]] | None = None

    @property
    def lists(self) -> dict[str, list[str]]:
        """All values of each parameter, in order, by the decoded name of the parameter.

        The dictionary is built at first use and must not be modified.
        """
        lists = self._lists
        if lists is None:
            lists = self._lists = {}
            for name, value in self.pairs:
                lists.setdefault(name, []).append(value)
        return lists
