"""Which media type, and which form of the object, a request wants back, and in which one it sends its body.

Follows k8s.io/apiserver/pkg/endpoints/handlers/negotiation (errors.go) and go-restful's route matching, whose 406 and 415 come
first for built-in resources and have texts of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from tetrapod.generic.negotiation.accept import (
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
)
from tetrapod.generic.request import Request
from tetrapod.machinery.requestinfo import query_values
from tetrapod.machinery.status import StatusError, not_acceptable


def negotiate(request: Request, offer: Offer = DEFAULT_OFFER) -> Accepted:
    """Choose the answer's form, honouring `?pretty` and the User-Agents that get indented JSON.

    Raises:
        StatusError: 406, nothing of what is accepted can be given.
    """
    header = request.header(b"accept")
    accepted = PLAIN if header in _PLAIN_HEADERS else choose(header, offer)
    if accepted is None:
        raise not_acceptable(f"only the following media types are accepted: {', '.join(offer.named)}")
    if not accepted.pretty and wants_pretty(request):
        accepted = replace(accepted, pretty=True)
    if accepted.form == TABLE and "includeObject" in request.query_string:
        accepted = replace(accepted, include=query_values(request.query_string).get("includeObject", ""))
    return accepted


_PLAIN_HEADERS: Final = frozenset({"", "*/*", JSON, "application/json, */*"})


def wants_pretty(request: Request) -> bool:
    """`?pretty=true`; without it, browsers, curl and Wget get indented JSON."""
    if "pretty" in request.query_string and (value := query_values(request.query_string).get("pretty")):
        return value in ("1", "t", "T", "true", "TRUE", "True")
    return request.header(b"user-agent").startswith(("curl", "Wget", "Mozilla/5.0"))


# --- the router's own checks, before any handler -----------------------------------------------------------------------


def check_route_accept(request: Request, produced: Sequence[str] = MEDIA_TYPES) -> None:
    """go-restful's look at Accept: parameters and quality do not count, `*/*` matches, `application/*` does not.

    Raises:
        StatusError: 406, with the text that lists what the route produces.
    """
    header = request.header(b"accept")
    if not header or (produced is MEDIA_TYPES and header in _PLAIN_HEADERS) or _route_matches(header, tuple(produced)):
        return
    text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"
    raise StatusError(406, "NotAcceptable", text, {})


@lru_cache(maxsize=512)
def _route_matches(header: str, produced: tuple[str, ...]) -> bool:
    media_types = (part.split(";", 1)[0].strip(" ") for part in header.removesuffix(",").split(","))
    return any(m == "*/*" or m in produced for m in media_types)


def check_route_content_type(request: Request, consumed: Sequence[str]) -> None:
    """go-restful's look at Content-Type, which PATCH routes restrict.

    Raises:
        StatusError: 415.
    """
    header = request.header(b"content-type")
    for part in header.split(","):
        if part.split(";", 1)[0].strip(" ") in consumed:
            return
    raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


# --- bodies ------------------------------------------------------------------------------------------------------------


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """The 415 of a body that no decoder is there for (upstream: NewUnsupportedMediaTypeError)."""
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", text)


def body_media_type(request: Request, offer: Offer = DEFAULT_OFFER) -> str:
    """The media type of the body; none given is JSON.

    Raises:
        StatusError: 415, for one that no decoder is there for.
    """
    header = request.header(b"content-type")
    if header in ("", JSON):
        return JSON
    media_type = parse_media_type(header)
    if media_type in MEDIA_TYPES and (offer.messages or media_type != PROTOBUF):
        return media_type
    raise unsupported_media_type(offer.named)
