"""The objects of requests and responses in events: encoded as JSON, without managed fields if the policy says so."""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.generic.http.gzip_encoding import decompressed
from tetrapod.generic.http.negotiation.accept import CBOR
from tetrapod.generic.http.request import Response
from tetrapod.generic.scheduling.offload import LARGE
from tetrapod.machinery import protobuf
from tetrapod.machinery.freeing import use_large
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.json_pieces import dumps, loads
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.serializer import json, yaml
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.types import schema_for

_MANAGED: Final = b'"managedFields"'
_STATUS_LIMIT: Final = 64 * 1024
"""A Status is not looked for in longer responses (bytes), because none is that long."""
_CBOR_TAG: Final = b"\xd9\xd9\xf7"
_NOTHING: Final = GroupVersionKind("", "v1", "")


def is_costly(response: Response, body: bytes) -> bool:
    """Return whether `response_object` takes so long for this response that the caller must run it in a thread.

    Args:
        response: the response, whose headers give the media type and the encoding of the body.
        body: the body as sent, which may be compressed.
    """
    return len(body) >= (LARGE if _media_type(response) == "application/json" else LARGE // 8) or (
        len(body) >= LARGE // 8 and _is_compressed(response)
    )


def encoded(obj: Object, *, omit_managed_fields: bool, in_thread: bool = False) -> bytes:
    """Return the JSON of an object, without managed fields if `omit_managed_fields`. The object is not modified.

    Args:
        obj: the object.
        omit_managed_fields: whether managed fields are left out.
        in_thread: whether to encode in steps between which other threads can run.
    """
    metadata = obj.get("metadata")
    if (
        isinstance(metadata, dict)
        and "managedFields" in metadata
        and (omit_managed_fields or not metadata["managedFields"])
    ):
        obj = {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
    try:
        return json.encode_large(obj) if in_thread else json.encode(obj)
    except orjson.JSONEncodeError:  # a string that is not valid UTF-8
        return json.encode(json.cleaned(obj))


def compact_json(data: bytes) -> bytes:
    """Return JSON without white space between its tokens, because an event is one line.

    Args:
        data: JSON that Go's decoder accepts. Numbers and strings that only Go accepts are converted to valid JSON.
    """
    try:
        return dumps(loads(data))
    except ValueError:  # numbers and strings that only Go's decoder accepts
        return orjson.dumps(json.cleaned(json.decode(data, unstructured=True).obj), default=str)


def response_object(response: Response, body: bytes, *, omit_managed_fields: bool) -> bytes:
    """Return the JSON of the object in the body of a response; empty if it has no object.

    A JSON body is not parsed, so that large lists cost little, unless it is indented or managed fields must be removed.

    Args:
        response: the response, whose headers give the media type and the encoding of the body.
        body: the body as sent, which may be compressed.
        omit_managed_fields: whether managedFields are removed from the object and from the items of a list.
    """
    data = _decoded_encoding(response, body)
    kind = _media_type(response)
    if kind == "application/json":
        if not data.lstrip().startswith(b"{"):
            return b""
        if data[1:2] == b"\n":  # indented
            data = dumps(loads(data))
        data = data.rstrip(b"\n")
    else:
        data = use_large(lambda: _parse(kind, data), lambda obj: b"" if obj is None else json.encode_large(obj))
    if omit_managed_fields and _MANAGED in data:
        return dumps(_without_managed_fields(loads(data)))
    return data


def may_be_status(response: Response) -> bool:
    """Return whether a streamed response may be a Status: its Content-Length is below 64 KiB.

    The result is False for a response without Content-Length.
    """
    length = next((value for name, value in response.headers if name == b"content-length"), b"")
    return int(length or _STATUS_LIMIT) < _STATUS_LIMIT


def status_in(response: Response, body: bytes) -> Object | None:
    """Return the v1 Status in a response, or None if the body is another object or longer than 64 KiB.

    Raises:
        ValueError: the body seems to contain a Status, but cannot be decoded.
    """
    start = body if body.startswith(_CBOR_TAG) else body[:64]  # the members of an object in CBOR have no order
    if len(body) > _STATUS_LIMIT or b"Status" not in start:
        return None
    kind = _media_type(response)
    obj = orjson.loads(body) if kind == "application/json" and body.startswith(b"{") else _parse(kind, body)
    return obj if obj is not None and obj.get("kind") == "Status" and obj.get("apiVersion") == "v1" else None


def _parse(kind: str, body: bytes) -> Object | None:
    try:
        if kind == "application/yaml":
            obj = yaml.decode(body).obj
            return obj if isinstance(obj, dict) else None
        if kind == CBOR:
            from tetrapod.machinery import cbor

            obj = cbor.decode(body)
            return obj if isinstance(obj, dict) else None
        if kind.startswith("application/vnd.kubernetes.protobuf") and body.startswith(protobuf.MAGIC):
            return _from_message(body)
    except DecodeError:
        return None
    return None


def _from_message(body: bytes) -> Object:
    obj = protobuf.decode(body, _NOTHING)
    group, _, version = obj.get("apiVersion", "").rpartition("/")
    try:
        typed.decode(schema_for(GroupVersionKind(group, version, obj.get("kind", ""))), obj)
    except (KeyError, typed.DecodeError):
        return obj
    return obj


def _media_type(response: Response) -> str:
    value = next((value for name, value in response.headers if name == b"content-type"), b"")
    return value.partition(b";")[0].decode("latin-1")


def _decoded_encoding(response: Response, body: bytes) -> bytes:
    """Return the body decompressed if the response is compressed by gzip, else as it is."""
    return decompressed(body) if _is_compressed(response) else body


def _is_compressed(response: Response) -> bool:
    return any(name == b"content-encoding" and value == b"gzip" for name, value in response.headers)


def _without_managed_fields(obj: Any) -> Any:
    """Remove, in place, the managed fields of an object, of a list's items, and of the objects in a Table's rows.

    Return the argument.
    """
    if not isinstance(obj, dict):
        return obj
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    for item in obj.get("items") or ():
        if isinstance(item, dict) and isinstance(item.get("metadata"), dict):
            item["metadata"].pop("managedFields", None)
    if obj.get("kind") == "Table":
        for row in obj.get("rows") or ():
            _without_managed_fields(row.get("object"))
    return obj
