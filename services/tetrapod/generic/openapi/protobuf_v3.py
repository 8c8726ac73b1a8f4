"""`ProtobufFormV3`: encodes OpenAPI v3 documents as gnostic's openapi.v3 messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tetrapod.generic.openapi.protobuf import (
    Table,
    Value,
    anything,
    body,
    delimited,
    double,
    either,
    flag,
    integer,
    many,
    message,
    named,
    pairs,
    text,
    wrapped,
)
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.protobuf.wire import varint


class ProtobufFormV3:
    """The encoder of OpenAPI v3 documents in protocol buffers; implements `FormV3`."""

    def path(self, item: Object) -> bytes:
        """Return the path item, encoded as the value of a (path, item) pair, for the argument `paths` of `document`."""
        return delimited(2, body(_PATH, 14, item))

    def schema(self, schema: Object) -> bytes:
        """Return the schema as the encoded value of a (name, schema) pair, for the argument `schemas` of `document`."""
        return _schema(2, schema)

    def document(self, head: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
        """Implement `FormV3.document`: yield the pieces of an openapi.v3 Document. Paths and schemas are sorted.

        Args:
            head: the document, not yet encoded. Its `paths` and `components.schemas` are replaced by those of the next
                arguments; without the keys `paths` and `components` they are left out.
            paths: the encoded path items (results of `path`) by API path. Each is removed when it is yielded.
            schemas: the encoded schemas (results of `schema`) by name. All are removed from the dictionary before the
                first one is yielded.
        """
        for key, value in head.items():
            if key == "paths":
                yield from pairs((4, 1), paths)
            elif key == "components":
                yield from _components(value, schemas)
            else:
                yield body(_DOCUMENT, 9, {key: value})


def _components(others: Object, schemas: dict[str, bytes]) -> Iterator[bytes]:
    """Yield the pieces of the components message: the schemas, which are removed, and `others`, its other members."""
    rest = body(_COMPONENTS, 10, others)
    encoded = list(pairs((1, 1), schemas)) if schemas else []
    yield varint(5 << 3 | 2) + varint(sum(map(len, encoded)) + len(rest))
    yield from encoded
    yield rest


_reference: Final[Value] = message({"$ref": (1, text), "summary": (2, text), "description": (3, text)})
_bare_schema: Final[Value] = message(lambda: _SCHEMA, 36)
_schema: Final[Value] = either(wrapped(2, _reference), wrapped(1, _bare_schema))


def _additional(field: int, value: Any) -> bytes:
    return wrapped(2, flag)(field, value) if isinstance(value, bool) else wrapped(1, _schema)(field, value)


def _default(field: int, value: Any) -> bytes:
    """Return a field with a default value. gnostic supports only scalar defaults; for others return b""."""
    if isinstance(value, bool):
        return wrapped(2, flag)(field, value)
    if isinstance(value, int | float):
        return wrapped(1, double)(field, value)
    return wrapped(3, text)(field, value) if isinstance(value, str) else b""


_SCHEMA: Final[Table] = {
    "nullable": (1, flag),
    "example": (7, anything),
    "title": (9, text),
    "multipleOf": (10, double),
    "maximum": (11, double),
    "exclusiveMaximum": (12, flag),
    "minimum": (13, double),
    "exclusiveMinimum": (14, flag),
    "maxLength": (15, integer),
    "minLength": (16, integer),
    "pattern": (17, text),
    "maxItems": (18, integer),
    "minItems": (19, integer),
    "uniqueItems": (20, flag),
    "maxProperties": (21, integer),
    "minProperties": (22, integer),
    "required": (23, many(text)),
    "enum": (24, many(anything)),
    "type": (25, text),
    "allOf": (26, many(_schema)),
    "oneOf": (27, many(_schema)),
    "anyOf": (28, many(_schema)),
    "not": (29, _bare_schema),
    "items": (30, wrapped(1, _schema)),
    "properties": (31, wrapped(1, named(_schema))),
    "additionalProperties": (32, _additional),
    "default": (33, _default),
    "description": (34, text),
    "format": (35, text),
}
_content: Final[Value] = wrapped(1, named(message({"schema": (1, _schema)})))
_PARAMETER: Final[Table] = {
    "name": (1, text),
    "in": (2, text),
    "description": (3, text),
    "required": (4, flag),
    "schema": (10, _schema),
}
_parameters: Final[Value] = many(wrapped(1, message(_PARAMETER)))
_REQUEST_BODY: Final[Table] = {"description": (1, text), "content": (2, _content), "required": (3, flag)}
_RESPONSE: Final[Table] = {"description": (1, text), "content": (3, _content)}
_OPERATION: Final[Table] = {
    "tags": (1, many(text)),
    "summary": (2, text),
    "description": (3, text),
    "operationId": (5, text),
    "parameters": (6, _parameters),
    "requestBody": (7, wrapped(1, message(_REQUEST_BODY))),
    "responses": (8, wrapped(2, named(wrapped(1, message(_RESPONSE))))),
    "deprecated": (10, flag),
}
_PATH: Final[Table] = {
    **{
        method: (number, message(_OPERATION, 13))
        for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch"), 4)
    },
    "parameters": (13, _parameters),
}
_SCHEME: Final[Table] = {"type": (1, text), "description": (2, text), "name": (3, text), "in": (4, text)}
_COMPONENTS: Final[Table] = {
    "securitySchemes": (7, wrapped(1, named(wrapped(1, message(_SCHEME))))),
}
_DOCUMENT: Final[Table] = {
    "openapi": (1, text),
    "info": (2, message({"title": (1, text), "description": (2, text), "version": (6, text)})),
}
