"""The negotiation of a discovery document's format: classic or aggregated; JSON, YAML, protobuf or CBOR.

Upstream: endpoints/discovery/aggregated/negotiation.go. The aggregated format is preferred, wherever Accept names it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tetrapod.generic.http.negotiation.accept import CBOR, MEDIA_TYPES, Offer, clause_fits, names_cbor, parse_accept
from tetrapod.generic.http.negotiation.documents import encode_document, write_status
from tetrapod.generic.http.negotiation.media_types import negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

AGGREGATED: Final = (("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2"))
_OFFER: Final = Offer(table=False, partial=False, server_version="")
_OFFER_WITHOUT_CBOR: Final = Offer(table=False, partial=False, cbor=False, server_version="")

__all__ = ["aggregated_media_type", "answer_document", "is_aggregated", "wants_no_peers"]


def aggregated_media_type(request: Request) -> str | None:
    """Return the Content-Type of the aggregated format if the Accept header names it, or None for the classic format.

    The result has the parameters in upstream's order, such as `application/json;g=apidiscovery.k8s.io;v=v2;as=…`.
    """
    header = request.header(b"accept")
    return _aggregated((header, names_cbor(header))) if "APIGroupDiscoveryList" in header else None


def wants_no_peers(request: Request) -> bool:
    """Return whether the client requests the aggregated format without the resources of peers, `profile=nopeer`."""
    header = request.header(b"accept")
    clause = _clause((header, names_cbor(header))) if "nopeer" in header else None
    return clause is not None and clause.profile == "nopeer"


class _Clause(NamedTuple):
    """The clause of an Accept header that names the aggregated format: its media type and its parameter `profile`."""

    media_type: str
    profile: str


def _aggregated(key: tuple[str, bool]) -> str | None:
    clause = _clause(key)
    return f"{clause.media_type};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" if clause is not None else None


@bounded(count=256, size=256 << 10, largest=2048)
def _clause(key: tuple[str, bool]) -> _Clause | None:
    header, cbor = key
    media_types = (*MEDIA_TYPES, CBOR) if cbor else MEDIA_TYPES
    for clause in parse_accept(header):
        media_type = next((m for m in media_types if clause.takes(m) and clause_fits(clause, m)), "")
        parameters = dict(clause.parameters)
        if media_type and all(parameters.get(key) == value for key, value in AGGREGATED):
            return _Clause(media_type, parameters.get("profile", ""))
    return None


def is_aggregated(media_type: str) -> bool:
    """Return whether a Content-Type is that of the aggregated format, with the parameters g, v and as.

    Upstream: client-go/discovery, ContentTypeIsGVK
    """
    clauses = parse_accept(media_type)
    if not clauses or clauses[0].type != "application":
        return False
    parameters = dict(clauses[0].parameters)
    return all(parameters.get(key) == value for key, value in AGGREGATED)


def answer_document(request: Request, document: Object, *, cbor: bool = True) -> Response:
    """Return a response with a classic discovery document, in the media type that the client accepts.

    JSON is indented if the client requests that.

    Args:
        request: the request.
        document: the document.
        cbor: whether the document may be CBOR, if that is served at all.

    Returns:
        The response, a 406 if no offered media type is accepted.
    """
    offer = _OFFER if cbor else _OFFER_WITHOUT_CBOR
    try:
        accepted = negotiate(request, offer)
    except StatusError as error:
        return write_status(request, error, offer)
    body = encode_document(document, accepted.media_type, pretty=accepted.pretty)
    return Response(200, [(b"content-type", accepted.media_type.encode())], body)
