"""The encoding of documents, and of errors in the media type that the client accepts.

Upstream: responsewriters, ErrorNegotiated.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.generic.http.negotiation.accept import PROTOBUF, YAML, Accepted, Offer, choose
from tetrapod.generic.http.negotiation.media_types import wants_pretty
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.machinery import protobuf
from tetrapod.machinery.golang.json_numbers import without_exponents
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.json import cleaned
from tetrapod.machinery.status import StatusError, not_acceptable

_DOCUMENT_OFFER: Final = Offer(table=False, partial=False)
_INDENTED: Final = Accepted(pretty=True)


def encode_document(document: Object, media_type: str, *, pretty: bool = False) -> bytes:
    """Encode a document. `media_type` has no parameters.

    Raises:
        StatusError: 406, the kind has no protobuf message.
    """
    if media_type == PROTOBUF:
        try:
            return protobuf.encode(document)
        except protobuf.UnknownMessageError:
            kind = document.get("kind", "")
            text = (
                f"object *{kind} does not implement the protobuf marshalling interface and cannot be encoded to a "
                "protobuf message"
            )
            raise not_acceptable(text) from None
    if media_type == YAML:
        from tetrapod.machinery.serializer import yaml

        return yaml.encode(document)
    return encode_json(document, pretty)


def encode_json(document: Any, pretty: bool = False) -> bytes:
    """Encode as upstream's JSON serializer: with a newline at the end, or, if `pretty`, indented and without one."""
    return without_exponents(
        orjson.dumps(document, option=orjson.OPT_INDENT_2 if pretty else orjson.OPT_APPEND_NEWLINE)
    )


def takes_status(request: Request) -> bool:
    """Return whether the client accepts an error in any of our media types."""
    return choose(request.header(b"accept"), _DOCUMENT_OFFER) is not None


def write_status(request: Request, error: StatusError, offer: Offer = _DOCUMENT_OFFER) -> Response:
    """Return an error as response, in the media type that the client accepts, or else JSON."""
    accepted = choose(request.header(b"accept"), offer) or _INDENTED
    pretty = accepted.pretty or wants_pretty(request)
    headers: HeaderList = [(b"content-type", accepted.media_type.encode())]
    if error.retry_after > 0:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    headers.extend(error.headers)
    document = error.to_status()
    try:
        body = encode_document(document, accepted.media_type, pretty=pretty)
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        body = encode_document(cleaned(document), accepted.media_type, pretty=pretty)
    return Response(error.code, headers, body)
