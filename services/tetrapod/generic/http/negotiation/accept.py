"""Media types: the choice between an Accept header and the offer of an endpoint, and the parsing of Content-Type.

The functions depend only on header texts. Results are cached, because clients send few different headers.
Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go; munnerz/goautoneg; mime.ParseMediaType
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.boundedcache import bounded

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
CBOR: Final = "application/cbor"
CBOR_SEQUENCE: Final = "application/cbor-seq"
"""The media type of a watch in CBOR."""

MEDIA_TYPES: Final = (JSON, YAML, PROTOBUF)
"""The media types with a serializer, which upstream's error texts list."""
_WATCH_TYPES: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_CBOR_GATE: Final = "CBORServingAndStorage"

META_GROUP: Final = "meta.k8s.io"
TABLE: Final = "Table"
PARTIAL: Final = "PartialObjectMetadata"
PARTIAL_LIST: Final = "PartialObjectMetadataList"


def serves_cbor() -> bool:
    """Return whether requests and responses may be CBOR."""
    return feature_gates.enabled(_CBOR_GATE)


def with_cbor(media_types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the media types, and CBOR as the last one if it is served."""
    return (*media_types, CBOR) if serves_cbor() else media_types


def watch_types() -> tuple[str, ...]:
    """Return the media types of watches: JSON and protobuf with `stream=watch`, and CBOR sequences if enabled."""
    return (*_WATCH_TYPES, CBOR_SEQUENCE) if serves_cbor() else _WATCH_TYPES


def stream_types() -> tuple[str, ...]:
    """Return the media types of a path whose GET may be a watch: those of single objects and those of watches."""
    return with_cbor(MEDIA_TYPES) + watch_types()


@dataclass(frozen=True, slots=True)
class Accepted:
    """The media type and the form of a response, as negotiated with the client.

    Attributes:
        media_type: the media type, without parameters.
        form: the kind into which the object is transformed (`Table`, `PartialObjectMetadata` or its list); "" for the
            object itself.
        form_version: the version of that kind in meta.k8s.io.
        pretty: whether JSON is indented.
        include: the value of `?includeObject`, which says what the rows of a Table contain.
    """

    media_type: str = JSON
    form: str = ""
    form_version: str = "v1"
    pretty: bool = False
    include: str = ""

    @property
    def plain(self) -> bool:
        """Whether the stored bytes can be sent unchanged: the object itself as JSON without indentation."""
        return not self.form and not self.pretty and self.media_type == JSON


PLAIN: Final = Accepted()


@dataclass(frozen=True, slots=True)
class Offer:
    """The media types and forms that an endpoint offers.

    Attributes:
        named: the media types that error texts list; CBOR is added if it is served.
        messages: whether the object itself can be sent as protobuf. False for custom resources: a clause of Accept with
            protobuf then selects only PartialObjectMetadata, and is skipped for the object itself.
        reads_messages: whether the body of a request can be protobuf. The scale of a custom resource reads it, although
            it is not sent as protobuf.
        table: whether the object can be sent as a Table.
        partial: whether it can be sent as PartialObjectMetadata.
        cbor: whether it can be sent as CBOR, if that is served at all.
        server_version: the only value of the parameter `sv` that a clause of Accept may have; "" for none. Upstream:
            EndpointRestrictions.AllowsServerVersion
    """

    named: tuple[str, ...] = MEDIA_TYPES
    messages: bool = True
    reads_messages: bool = True
    table: bool = True
    partial: bool = True
    cbor: bool = True
    server_version: str = "v1"

    def listed(self) -> str:
        """Return `named`, and CBOR if it is served, joined by commas for an error text."""
        return ", ".join(with_cbor(self.named) if self.cbor else self.named)


DEFAULT_OFFER: Final = Offer()


_SORTED_AT_MOST: Final = 64
_LONGEST: Final = 8192
"""The most characters of a header that are parsed. Clients send some hundred; parsing happens before authorization."""


class Clause(NamedTuple):
    """A clause of an Accept header: the media type in two parts, the quality from 0 to 1, and the other parameters."""

    type: str
    subtype: str
    quality: float
    parameters: tuple[tuple[str, str], ...]

    def takes(self, media_type: str) -> bool:
        """Return whether the clause accepts `media_type`, which has no parameters.

        `*` in the clause matches any part.
        """
        wanted = (self.type, self.subtype)
        type_, subtype = media_type.split("/")
        return wanted in ((type_, subtype), (type_, "*"), ("*", "*"))

    def is_preferred_to(self, other: Clause) -> bool:
        """Return whether this clause is preferred to another by goautoneg's rule.

        The rule is not a consistent order: both of two clauses may be preferred to the other.
        """
        if self.quality > other.quality:
            return True
        return (self.type != "*" and other.type == "*") or (self.subtype != "*" and other.subtype == "*")


def choose(header: str, offer: Offer) -> Accepted | None:
    """Return the media type and form for the most preferred clause of an Accept header that the offer satisfies.

    An empty header gives JSON. None means that the offer satisfies no clause.
    """
    return _choose((header, offer, names_cbor(header) and offer.cbor)) if header else PLAIN


def names_cbor(header: str) -> bool:
    """Return whether CBOR is served and an Accept header may name it. A wildcard never selects it."""
    return "cbor" in header and serves_cbor()


@bounded(count=1024, size=1 << 20, largest=2048)
def _choose(key: tuple[str, Offer, bool]) -> Accepted | None:
    header, offer, cbor = key
    media_types = (*MEDIA_TYPES, CBOR) if cbor else MEDIA_TYPES
    for clause in parse_accept(header):
        for media_type in media_types:
            if clause.takes(media_type) and (accepted := _satisfy(clause, media_type, offer)):
                return accepted
    return None


def _satisfy(clause: Clause, media_type: str, offer: Offer) -> Accepted | None:
    if not clause_fits(clause, media_type, offer.server_version):
        return None
    kind = group = version = None
    pretty = False
    for key, value in clause.parameters:
        if key == "as":
            kind = value
        elif key == "g":
            group = value
        elif key == "v":
            version = value
        elif key == "pretty":
            pretty = value == "1"
    if kind is None and group is None and version is None:
        return Accepted(media_type, pretty=pretty) if offer.messages or media_type != PROTOBUF else None
    if group != META_GROUP or version not in ("v1", "v1beta1"):
        return None
    allowed = (kind == TABLE and offer.table and media_type in (JSON, YAML)) or (
        kind in (PARTIAL, PARTIAL_LIST) and offer.partial
    )
    return Accepted(media_type, kind or "", version, pretty) if allowed else None


def clause_fits(clause: Clause, media_type: str, server_version: str = "", *, streams: bool = True) -> bool:
    """Return whether an endpoint can satisfy the parameters `stream` and `sv` of a clause of Accept.

    The last value counts. Empty values have no effect.

    Args:
        clause: the clause.
        media_type: the media type that it accepts.
        server_version: the only value of `sv` that the endpoint allows; "" for none.
        streams: whether the endpoint allows `stream`, whose only value is `watch`. YAML has no streams.
    """
    parameters = dict(clause.parameters)
    stream, version = parameters.get("stream"), parameters.get("sv")
    return (not stream or (streams and stream == "watch" and media_type != YAML)) and (
        not version or version == server_version
    )


def parse_accept(header: str) -> list[Clause]:
    """Return the clauses of an Accept header, most preferred first, without malformed ones.

    Only spaces are white space.
    """
    clauses = []
    for part in readable(header).split(","):
        media, *parameters = part.strip(" ").split(";")
        type_, _, rest = media.partition("/")
        subtype, _, further = rest.partition("/")  # a slash at the end is ignored
        type_, subtype = type_.strip(" "), subtype.strip(" ")
        if not rest:
            if type_ != "*":
                continue
            subtype = "*"
        if further:
            continue
        quality, other_parameters = 1.0, []
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if not value or "=" in value:
                continue
            if key.strip(" ") == "q":
                quality = _float(value)
            else:
                other_parameters.append((key.strip(" "), value.strip(" ")))
        clauses.append(Clause(type_, subtype, quality, tuple(other_parameters)))
    return _sorted(clauses)


def readable(header: str) -> str:
    """Return the part of a header that is parsed: the complete elements within its first 8,192 characters.

    A header that is not longer is returned unchanged.
    """
    return header if len(header) <= _LONGEST else header[:_LONGEST].rpartition(",")[0]


def _sorted(clauses: list[Clause]) -> list[Clause]:
    """Sort the clauses in place, most preferred first, and return them.

    It is an insertion sort of the first 64, as Go does for short slices. The result depends on the algorithm, because
    the rule is not a consistent order.
    """
    for i in range(1, min(len(clauses), _SORTED_AT_MOST)):
        while i > 0 and clauses[i].is_preferred_to(clauses[i - 1]):
            clauses[i], clauses[i - 1] = clauses[i - 1], clauses[i]
            i -= 1
    return clauses


def _float(text: str) -> float:
    try:
        return float(text) if text == text.strip() and "_" not in text else 0.0
    except ValueError:
        return 0.0


@bounded(count=512, size=256 << 10, largest=1024)
def parse_media_type(header: str) -> str:
    """Return the media type of a Content-Type in lower case without parameters; "" if the header is malformed.

    Upstream: Go's mime.ParseMediaType
    """
    if len(header) > _LONGEST:
        return ""
    media_type, _, rest = header.partition(";")
    media_type = media_type.strip().lower()
    type_, slash, subtype = media_type.partition("/")
    if not _is_token(type_) or (slash and not _is_token(subtype)):
        return ""
    keys = set()
    while rest := rest.strip():
        key, equals, rest = rest.partition("=")
        key = key.strip().lower()
        if not equals or not _is_token(key) or key in keys:
            return ""
        keys.add(key)
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
