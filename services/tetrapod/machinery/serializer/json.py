"""Decoding and encoding of JSON bodies.

This includes cases that upstream's decoder distinguishes and Python's decoders do not.

`decode` is called for every request body. orjson decodes it; if re-encoding gives the same bytes but for white space,
every field was unique, and every number is unchanged. Otherwise a pass with the standard library detects duplicate
fields, numbers beyond 64 bits, lone surrogates and invalid UTF-8, which are decoded in a slower way.

Upstream: sigs.k8s.io/json.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Collection
from typing import Any, Final

import orjson

from tetrapod.machinery.depth import MAX_DEPTH, encode_within
from tetrapod.machinery.field import child, index
from tetrapod.machinery.golang.json_numbers import without_exponents
from tetrapod.machinery.golang.json_syntax import explain
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import NotInPiecesError, dumps, loads, loads_with
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer.errors import Decoded, DecodeError, NumberError

_INT64: Final = 1 << 63
_BLANK: Final = b" \t\r\n"
_MAX_STRICT_ERRORS: Final = 100
_CLEANED_AT_ONCE: Final = 16 * 1024
"""Characters. Replacing half a million surrogates at once keeps other threads from running for 60 ms."""
_surrogate = re.compile("[\ud800-\udfff]").search


def decode(data: bytes, *, unstructured: bool = False) -> Decoded:
    """Decode a JSON body, and find its duplicate fields.

    Args:
        data: the body.
        unstructured: whether the body is a custom resource, for which the last of several duplicate fields wins.
            Upstream decodes built-in kinds into structs, so duplicate fields with objects are merged.

    Raises:
        DecodeError: the body is not JSON or nests too deeply, or (NumberError) a number does not fit a float64.
    """
    try:
        obj = loads(data)
        encoded = encode_within(obj, orjson.OPT_STRICT_INTEGER)
    except (ValueError, TypeError):
        return _decode_slowly(data, unstructured)
    # White space within strings may be left out on both sides: a duplicate field would still make the body longer.
    if encoded == data or encoded.translate(None, _BLANK) == data.translate(None, _BLANK):
        return Decoded(obj, [])
    try:
        loads_with(_check_plain, data, unique=True)
    except (_UnusualError, NotInPiecesError, RecursionError):
        return _decode_slowly(data, unstructured)
    return Decoded(obj, [])


class _UnusualError(Exception):
    """The exception for a body that needs `_decode_slowly`, because the fast decoder does not handle it correctly.

    Such a body has duplicate fields or very long integers.
    """


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj = dict(pairs)
    if len(obj) != len(pairs):
        raise _UnusualError
    return obj


def _small(digits: str) -> int:
    if len(digits) > 18:
        raise _UnusualError
    return int(digits)


def _no_float(_: str) -> None:
    """Return None in place of a number with a fraction. A hook for the decoder that only checks a body.

    It is a Python function because other threads can run when the decoder calls one, unlike a type of C.
    """


_plain_decoder: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_small, parse_float=_no_float)


def _check_plain(data: bytes) -> Any:
    return _plain_decoder.decode(data.decode())


class Pairs(list[tuple[str, Any]]):
    """A decoded JSON object as a list of its fields in document order, including duplicates."""


def _pairs(fields: list[tuple[str, Any]]) -> Pairs:
    """Return an object as `Pairs`; a hook for the decoder.

    It is a Python function, so that other threads run while a long document is decoded; a class is called by C alone.

    Args:
        fields: the names and values of the object in document order, including duplicates.
    """
    return Pairs(fields)


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise NumberError(f"json: cannot unmarshal number {digits} into Go value of type float64")
    return number


def _integer(digits: str) -> int | float:
    number = int(digits) if len(digits) < 21 else _INT64
    return number if -_INT64 <= number < _INT64 else _float(digits)


def _no_constant(name: str) -> Any:
    raise DecodeError(name)


_pairs_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_no_constant
)


def _replace_bytes(error: UnicodeError) -> tuple[str, int]:
    """Return one replacement character for an invalid byte, as in Go, and the position after it.

    Python's own error handler replaces some sequences of several bytes by one character.
    """
    assert isinstance(error, UnicodeDecodeError)  # the handler is used for decoding only
    return "\ufffd", error.start + 1


BYTE_ERRORS: Final = "tetrapod.byte"
"""The error handler of `bytes.decode` that replaces each byte that is not UTF-8."""
codecs.register_error(BYTE_ERRORS, _replace_bytes)


def pairs(data: bytes) -> Any:
    """Decode a JSON document with its objects as `Pairs`.

    Invalid UTF-8 is replaced by U+FFFD, and lone surrogates are kept.

    Raises:
        DecodeError: the document is not JSON or nests too deeply, or (NumberError) a number does not fit a float64.
    """
    try:
        return loads_with(_load_pairs, data)
    except NumberError:
        raise
    except NotInPiecesError:
        if problem := explain(data) or explain(data, MAX_DEPTH):
            raise DecodeError(problem) from None
        return _load_pairs(data)
    except RecursionError:
        raise _too_deep(data) from None
    except ValueError as error:
        raise DecodeError(explain(data) or str(error)) from None


def _load_pairs(data: bytes) -> Any:
    return _pairs_decoder.decode(data.decode("utf-8", BYTE_ERRORS))


def _too_deep(data: bytes) -> DecodeError:
    return DecodeError(explain(data, MAX_DEPTH) or "exceeded max depth")


def _decode_slowly(data: bytes, unstructured: bool) -> Decoded:
    duplicates: dict[str, None] = {}
    try:
        obj = _build(pairs(data), "", duplicates, unstructured, 0)
    except RecursionError:
        raise _too_deep(data) from None
    return Decoded(obj, [f"duplicate field {go_quote(path)}" for path in list(duplicates)[:_MAX_STRICT_ERRORS]])


def _build(value: Any, path: str, duplicates: dict[str, None], unstructured: bool, depth: int) -> Any:
    """Return the value of a document that `pairs` decoded.

    Args:
        value: the document or a part of it.
        path: the field path of `value`, "" for the whole document.
        duplicates: receives the paths of duplicate fields as keys, in document order.
        unstructured: whether the last of several duplicate fields wins; otherwise those that are objects are merged.
        depth: the number of objects and lists around `value`.

    Raises:
        RecursionError: the value nests deeper than MAX_DEPTH.
    """
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, Pairs):
        obj: dict[str, Any] = {}
        for key, member in value:
            key = _clean(key)
            at = child(path, key)
            if key in obj:
                duplicates[at] = None
            built = _build(member, at, duplicates, unstructured, depth + 1)
            existing = obj.get(key)
            if isinstance(existing, dict) and isinstance(built, dict) and not unstructured:
                _merge(existing, built)
            else:
                obj[key] = built
        return obj
    if isinstance(value, list):
        return [_build(item, index(path, i), duplicates, unstructured, depth + 1) for i, item in enumerate(value)]
    if isinstance(value, str):
        return _clean(value)
    return value


def _merge(into: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        existing = into.get(key)
        if isinstance(existing, dict) and isinstance(value, dict):
            _merge(existing, value)
        else:
            into[key] = value


def _clean(text: str) -> str:
    """Return a text in which U+FFFD replaces each lone surrogate, and surrogate pairs become one character.

    Long texts are cleaned in parts. They come from JSON decoders, which have joined the pairs already.
    """
    if not _surrogate(text):
        return text
    if len(text) > _CLEANED_AT_ONCE:
        parts = [text[start : start + _CLEANED_AT_ONCE] for start in range(0, len(text), _CLEANED_AT_ONCE)]
        return "".join([_clean(part) for part in parts])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cleaned(value: Any) -> Any:
    """Return a copy of a JSON value in which U+FFFD replaces each lone surrogate, so that it can be encoded as UTF-8.

    Text from a URL path or a header has a lone surrogate for each byte that is not UTF-8.
    """
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(member) for key, member in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


def strict_errors(data: bytes, unknown: Collection[str], schema: SchemaNode | None = None) -> list[str]:
    """Return the errors of strict decoding of a built-in kind: unknown and duplicate fields, in document order.

    At most 100 distinct errors are returned.

    Args:
        data: the body, which is valid JSON.
        unknown: the paths (`spec.containers[0].img`) that the kind's schema does not have. Fields below them are not
            checked.
        schema: the kind's schema. Duplicates below a field that preserves unknown fields (RawExtension, FieldsV1) are
            not reported: upstream's types with an unmarshaler of their own are not decoded strictly. None if the body
            has no such field.
    """
    errors: dict[str, None] = {}
    _report_strict_errors(pairs(data), "", frozenset(unknown), errors.setdefault, schema)
    return list(errors)[:_MAX_STRICT_ERRORS]


def _report_strict_errors(
    value: Any, path: str, unknown: Collection[str], report: Callable[[str], object], schema: SchemaNode | None
) -> None:
    if schema is not None and schema.preserve_unknown:
        return
    if isinstance(value, Pairs):
        seen: set[str] = set()
        for key, member in value:
            key = _clean(key)
            at = child(path, key)
            if at in unknown:
                report(f"unknown field {go_quote(at)}")
                continue
            if key in seen:
                report(f"duplicate field {go_quote(at)}")
            seen.add(key)
            _report_strict_errors(member, at, unknown, report, _member(schema, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _report_strict_errors(item, index(path, i), unknown, report, schema and schema.items)


def _member(schema: SchemaNode | None, key: str) -> SchemaNode | None:
    return None if schema is None else schema.properties.get(key) or schema.additional_properties


_FIRST: Final[tuple[str, ...]] = ("kind", "apiVersion", "metadata")


def ordered(obj: Object) -> Object:
    """Return a shallow copy of an object with kind, apiVersion and metadata first, and other fields in their order."""
    first: Object = {key: obj[key] for key in _FIRST if key in obj}
    first.update(obj)
    return first


def encode(obj: Object) -> bytes:
    """Encode an object as JSON: kind, apiVersion and metadata first, and other fields in their order.

    Floats are written as Go does.
    """
    return without_exponents(orjson.dumps(ordered(obj)))


def encode_large(obj: Object) -> bytes:
    """Encode an object like `encode`, in steps between which other threads can run.

    It is meant for calls in a worker thread, so that the event loop is not blocked.
    """
    return without_exponents(dumps(ordered(obj)))


_HTML: Final = re.compile(rb"[&<>]|\xe2\x80[\xa8\xa9]")
_ESCAPED_AT_ONCE: Final = 64 << 10
"""Bytes in which characters are escaped before other threads can run."""
_ESCAPED: Final = {
    b"&": rb"\u0026",
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"\xe2\x80\xa8": rb"\u2028",
    b"\xe2\x80\xa9": rb"\u2029",
}


def go_escaped(data: bytes) -> bytes:
    """Return a JSON text with the characters escaped that Go's json.Marshal escapes for HTML.

    In valid JSON they can occur only within strings.
    """
    if b"<" not in data and b">" not in data and b"&" not in data and b"\xe2\x80" not in data:
        return data  # Searching for each character costs a tenth of searching for the pattern.
    if len(data) <= _ESCAPED_AT_ONCE:
        return _HTML.sub(lambda match: _ESCAPED[match[0]], data)
    pieces, start = [], 0
    while start < len(data):
        end = start + _ESCAPED_AT_ONCE
        # A piece does not end within a character.
        while end < len(data) and data[end] & 0xC0 == 0x80 and end > start + 1:
            end -= 1
        pieces.append(_HTML.sub(lambda match: _ESCAPED[match[0]], data[start:end]))
        start = end
    return b"".join(pieces)
