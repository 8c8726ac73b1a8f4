"""The encoding of documents (discovery, OpenAPI, Status) in the media type that the client accepts.

Upstream: responsewriters, ErrorNegotiated
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.generic.http.negotiation.accept import CBOR, PROTOBUF, YAML, Accepted, Offer, choose
from tetrapod.generic.http.negotiation.media_types import wants_pretty
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.machinery import protobuf
from tetrapod.machinery.golang.json_numbers import without_exponents
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.json import cleaned
from tetrapod.machinery.status import StatusError, not_acceptable

_DOCUMENT_OFFER: Final = Offer(table=False, partial=False, server_version="")
_INDENTED: Final = Accepted(pretty=True)


def encode_document(document: Object, media_type: str, *, pretty: bool = False) -> bytes:
    """Return a document as bytes of a media type, which has no parameters. `pretty` indents JSON.

    Raises:
        StatusError: 406, the media type is protobuf and the kind has no message.
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
    if media_type == CBOR:
        from tetrapod.machinery import cbor

        return cbor.shuffled(document)
    if media_type == YAML:
        from tetrapod.machinery.serializer import yaml

        return yaml.encode(document)
    return encode_json(document, pretty)


def encode_json(document: Any, pretty: bool = False) -> bytes:
    """Return a value as upstream's serializer writes it: compact JSON with a final newline.

    With `pretty` it is indented and has no final newline. The items of a list are indented one by one, so that other
    threads can run.
    """
    if pretty and isinstance(document, dict) and document:
        name, members = next(reversed(document.items()))
        if isinstance(members, list) and len(members) > 1:
            return _indented_list(document, name, members)
    return without_exponents(
        orjson.dumps(document, option=orjson.OPT_INDENT_2 if pretty else orjson.OPT_APPEND_NEWLINE)
    )


def _indented_list(document: Object, name: str, members: list[Any]) -> bytes:
    """Return `document` as indented JSON, encoding the members of its list one by one, so that other threads can run.

    Args:
        document: an object whose last field is a list with at least one element.
        name: the name of that field.
        members: the value of that field.
    """
    outer = without_exponents(orjson.dumps({**document, name: []}, option=orjson.OPT_INDENT_2))
    parts = [without_exponents(orjson.dumps(member, option=orjson.OPT_INDENT_2)) for member in members]
    indented = b",\n".join([b"    " + part.replace(b"\n", b"\n    ") for part in parts])
    return outer.removesuffix(b"[]\n}") + b"[\n" + indented + b"\n  ]\n}"


def takes_status(request: Request) -> bool:
    """Return whether the client accepts a Status in one of the media types that the server can write."""
    return choose(request.header(b"accept"), _DOCUMENT_OFFER) is not None


def write_status(request: Request, error: StatusError, offer: Offer = _DOCUMENT_OFFER) -> Response:
    """Return the response for a StatusError, with its Status in the media type that the client accepts.

    If the client accepts none of those in `offer`, the Status is indented JSON.
    """
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
