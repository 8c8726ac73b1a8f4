"""The negotiation of the response's media type and representation, and of the media type of the request body.

For built-in resources, go-restful's routes check Accept and Content-Type first, with error texts of their own.
Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go; go-restful's route matching
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tetrapod.generic.http.negotiation.accept import (
    CBOR,
    DEFAULT_OFFER,
    JSON,
    MEDIA_TYPES,
    PLAIN,
    PROTOBUF,
    TABLE,
    Accepted,
    Offer,
    choose,
    parse_media_type,
    readable,
    serves_cbor,
    with_cbor,
)
from tetrapod.generic.http.request import Request
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.status import StatusError, not_acceptable


def negotiate(request: Request, offer: Offer = DEFAULT_OFFER) -> Accepted:
    """Return the media type and representation of the response.

    JSON is indented if `?pretty` or Accept requests it, and for browsers, curl and Wget.

    Raises:
        StatusError: 406, nothing that the client accepts is offered.
    """
    header = request.header(b"accept")
    accepted = PLAIN if header in _PLAIN_HEADERS else choose(header, offer)
    if accepted is None:
        raise not_acceptable(f"only the following media types are accepted: {offer.listed()}")
    if not accepted.pretty and wants_pretty(request):
        accepted = replace(accepted, pretty=True)
    if accepted.form == TABLE and "includeObject" in request.query_string:
        accepted = replace(accepted, include=request.query().values.get("includeObject", ""))
    return accepted


_PLAIN_HEADERS: Final = frozenset({"", "*/*", JSON, "application/json, */*"})


def wants_pretty(request: Request) -> bool:
    """Return whether `?pretty` is true; without the parameter, whether the client is a browser, curl or Wget."""
    if "pretty" in request.query_string and (value := request.query().values.get("pretty")):
        return value in ("1", "t", "T", "true", "TRUE", "True")
    return request.header(b"user-agent").startswith(("curl", "Wget", "Mozilla/5.0"))


# --- checks of upstream's router, before any handler ------------------------------------------------------------------


def check_route_accept(request: Request, produced: Sequence[str] = MEDIA_TYPES) -> None:
    """Check the Accept header as go-restful's routes do.

    Parameters and quality are ignored, `*/*` matches, `application/*` does not.

    Args:
        request: the request.
        produced: the media types that the route can write; CBOR is added to the default if it is served.

    Raises:
        StatusError: 406, with a text that lists `produced`.
    """
    header = request.header(b"accept")
    if not header or (produced[0] == JSON and header in _PLAIN_HEADERS):
        return
    if produced is MEDIA_TYPES:
        produced = with_cbor(MEDIA_TYPES)
    if _route_matches((header, tuple(produced))):
        return
    text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"
    raise StatusError(406, "NotAcceptable", text, {})


@bounded(count=1024, size=1 << 20, largest=2048)
def _route_matches(key: tuple[str, tuple[str, ...]]) -> bool:
    header, produced = key
    media_types = (part.split(";", 1)[0].strip(" ") for part in readable(header).removesuffix(",").split(","))
    return any(m == "*/*" or m in produced for m in media_types)


def check_route_content_type(request: Request, consumed: Sequence[str]) -> None:
    """Check the Content-Type header as go-restful's routes do, also of requests without a body.

    Args:
        request: the request. A GET needs no header.
        consumed: the accepted media types.

    Raises:
        StatusError: 415, the header names none of them.

    Upstream: github.com/emicklei/go-restful/v3/route.go, Route.matchesContentType
    """
    header = request.header(b"content-type")
    if not header and request.method == "GET":
        return
    for part in header.split(","):
        if part.split(";", 1)[0].strip(" ") in consumed:
            return
    raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


# --- bodies -----------------------------------------------------------------------------------------------------------


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """Return (not raise) the 415 for a body that the server cannot decode (upstream: NewUnsupportedMediaTypeError).

    The text lists `accepted`.
    """
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", text)


def body_media_type(request: Request, offer: Offer = DEFAULT_OFFER) -> str:
    """Return the media type of the request body without parameters; JSON if the header is missing.

    `offer` says whether the kind is read from protobuf.

    Raises:
        StatusError: 415, the server cannot decode the media type.
    """
    header = request.header(b"content-type")
    if header in ("", JSON):
        return JSON
    media_type = parse_media_type(header)
    if media_type in MEDIA_TYPES and (offer.reads_messages or media_type != PROTOBUF):
        return media_type
    if media_type == CBOR and serves_cbor():
        return CBOR
    raise unsupported_media_type(with_cbor(offer.named))
