"""Which form of a discovery document a request wants: classic or aggregated, JSON, YAML or protobuf.

Upstream: endpoints/discovery/aggregated/negotiation.go. Aggregated wins over classic wherever it stands in Accept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tetrapod.generic.negotiation.accept import MEDIA_TYPES, Offer, parse_accept
from tetrapod.generic.negotiation.choosing import check_route_accept, negotiate
from tetrapod.generic.negotiation.documents import encode_document
from tetrapod.generic.request import Request, Response
from tetrapod.machinery.gvk import Object

AGGREGATED: Final = (("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2"))
_OFFER: Final = Offer(table=False, partial=False)

__all__ = ["aggregated_media_type", "answer_document", "check_route_accept", "is_aggregated"]


def aggregated_media_type(request: Request) -> str | None:
    """The media type of the aggregated form, with its parameters as upstream writes them; None for the classic form."""
    header = request.header(b"accept")
    return _aggregated(header) if "APIGroupDiscoveryList" in header else None


@lru_cache(maxsize=128)
def _aggregated(header: str) -> str | None:
    for clause in parse_accept(header):
        media_type = clause.first_of(MEDIA_TYPES)
        given = dict(clause.parameters)
        if media_type and all(given.get(key) == value for key, value in AGGREGATED):
            return f"{media_type};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    return None


def is_aggregated(media_type: str) -> bool:
    """Whether an answer of this Content-Type is the aggregated form (upstream: client-go/discovery, ContentTypeIsGVK)."""
    clauses = parse_accept(media_type)
    if not clauses or clauses[0].type != "application":
        return False
    given = dict(clauses[0].parameters)
    return all(given.get(key) == value for key, value in AGGREGATED)


def answer_document(request: Request, document: Object) -> Response:
    """A document in its classic form, indented for who wants it so.

    Raises:
        StatusError: 406, no plain form is accepted.
    """
    accepted = negotiate(request, _OFFER)
    body = encode_document(document, accepted.media_type, pretty=accepted.pretty)
    return Response(200, [(b"content-type", accepted.media_type.encode())], body)
