"""Media types: what an Accept header wants of what an endpoint offers, and what a Content-Type header says.

Pure functions of header texts, remembered, since the same few headers come again and again. Follows
k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go, munnerlyn/goautoneg, and Go's mime.ParseMediaType.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

MEDIA_TYPES: Final = (JSON, YAML, PROTOBUF)
"""What upstream names in its texts, and what there is a codec for."""
STREAM_TYPES: Final = (*MEDIA_TYPES, f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

META_GROUP: Final = "meta.k8s.io"
TABLE: Final = "Table"
PARTIAL: Final = "PartialObjectMetadata"
PARTIAL_LIST: Final = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome: a media type, and what the object is turned into (`form` "" is the object itself)."""

    media_type: str = JSON
    form: str = ""
    form_version: str = "v1"
    pretty: bool = False
    include: str = ""
    """`?includeObject`, what the rows of a Table carry."""

    @property
    def plain(self) -> bool:
        """The stored bytes will do as they are."""
        return not self.form and not self.pretty and self.media_type == JSON


PLAIN: Final = Accepted()


@dataclass(frozen=True, slots=True)
class Offer:
    """What an endpoint can give: the media types that its texts name, whether as a Table, and whether there are messages of its kind.
    Of a custom resource there are none, but its metadata has one; the object itself then comes as the next clause of Accept says."""

    named: tuple[str, ...] = MEDIA_TYPES
    messages: bool = True
    table: bool = True
    partial: bool = True


DEFAULT_OFFER: Final = Offer()


_SORTED_AT_MOST: Final = 64


class Clause(NamedTuple):
    """One of an Accept header: what it takes, and how much it is wanted (0 to 1)."""

    type: str
    subtype: str
    quality: float
    parameters: tuple[tuple[str, str], ...]

    def takes(self, media_type: str) -> bool:
        """Whether the media type, without parameters, is one of those that are meant; `*` stands for any part."""
        wanted = (self.type, self.subtype)
        type_, subtype = media_type.split("/")
        return wanted in ((type_, subtype), (type_, "*"), ("*", "*"))

    def first_of(self, media_types: Sequence[str]) -> str:
        """Empty where it takes none."""
        return next((media_type for media_type in media_types if self.takes(media_type)), "")

    def before(self, other: Clause) -> bool:
        """Whether it is wanted more: goautoneg's rule, which is no order."""
        if self.quality > other.quality:
            return True
        return (self.type != "*" and other.type == "*") or (self.subtype != "*" and other.subtype == "*")


@lru_cache(maxsize=512)
def choose(header: str, offer: Offer) -> Accepted | None:
    """The first clause, in order of preference, that one of the media types satisfies."""
    if not header:
        return PLAIN
    for clause in parse_accept(header):
        for media_type in MEDIA_TYPES:
            if clause.takes(media_type) and (found := _satisfy(clause, media_type, offer)):
                return found
    return None


def _satisfy(clause: Clause, media_type: str, offer: Offer) -> Accepted | None:
    kind = group = version = None
    pretty = False
    for key, value in clause.parameters:
        if key == "as":
            kind = value
        elif key == "g":
            group = value
        elif key == "v":
            version = value
        elif key == "stream":
            if value and (value != "watch" or media_type == YAML):
                return None
        elif key == "pretty":
            pretty = value == "1"
    if kind is None and group is None and version is None:
        return Accepted(media_type, pretty=pretty) if offer.messages or media_type != PROTOBUF else None
    if group != META_GROUP or version not in ("v1", "v1beta1"):
        return None
    allowed = (kind == TABLE and offer.table and media_type != PROTOBUF) or (kind in (PARTIAL, PARTIAL_LIST) and offer.partial)
    return Accepted(media_type, kind or "", version, pretty) if allowed else None


def parse_accept(header: str) -> list[Clause]:
    """The clauses of an Accept header, most wanted first; what does not parse is left out. Only spaces count as blank."""
    clauses = []
    for part in header.split(","):
        media, *parameters = part.strip(" ").split(";")
        type_, slash, subtype = media.strip(" ").partition("/")
        type_, subtype = type_.strip(" "), subtype.strip(" ")
        if not slash or not subtype:
            if type_ != "*":
                continue
            subtype = "*"
        if "/" in subtype:
            continue
        quality, kept = 1.0, []
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if not value or "=" in value:
                continue
            if key.strip(" ") == "q":
                quality = _float(value)
            else:
                kept.append((key.strip(" "), value.strip(" ")))
        clauses.append(Clause(type_, subtype, quality, tuple(kept)))
    return _sorted(clauses)


def _sorted(clauses: list[Clause]) -> list[Clause]:
    """By insertion, as Go sorts so few: with a rule that is no order it matters how."""
    for i in range(1, min(len(clauses), _SORTED_AT_MOST)):
        while i > 0 and clauses[i].before(clauses[i - 1]):
            clauses[i], clauses[i - 1] = clauses[i - 1], clauses[i]
            i -= 1
    return clauses


def _float(text: str) -> float:
    try:
        return float(text) if text == text.strip() and "_" not in text else 0.0
    except ValueError:
        return 0.0


@lru_cache(maxsize=256)
def parse_media_type(header: str) -> str:
    """The media type in lower case, "" where the header is malformed (Go's mime.ParseMediaType)."""
    media_type, _, rest = header.partition(";")
    media_type = media_type.strip().lower()
    type_, slash, subtype = media_type.partition("/")
    if not _is_token(type_) or (slash and not _is_token(subtype)):
        return ""
    seen = set()
    while rest := rest.strip():
        key, equals, rest = rest.partition("=")
        key = key.strip().lower()
        if not equals or not _is_token(key) or key in seen:
            return ""
        seen.add(key)
        if rest.startswith('"'):
            end = rest.find('"', 1)
            if end < 0:
                return ""
            rest = rest[end + 1 :].lstrip()
            if rest and not rest.startswith(";"):
                return ""
            rest = rest[1:]
        else:
            value, _, rest = rest.partition(";")
            if not _is_token(value.strip()):
                return ""
    return media_type


_SEPARATORS: Final = frozenset('()<>@,;:\\"/[]?= \t')


def _is_token(text: str) -> bool:
    return bool(text) and all(" " < c < "\x7f" and c not in _SEPARATORS for c in text)
