"""`ProtobufForm`: encodes Swagger documents as gnostic's openapi.v2 messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tetrapod.generic.openapi.document_chunks import KINDS, Definition
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


class ProtobufForm:
    """The encoder of Swagger documents in protocol buffers; implements `Form`."""

    def path(self, path: str, item: Object) -> bytes:
        """Return the path item, encoded as the value of a (path, item) pair, for the argument `paths` of `document`.

        The argument `path` is not used.
        """
        return delimited(2, body(_PATH, 10, item))

    def schema(self, schema: Object) -> bytes:
        """Return the encoded fields of a schema; `document` appends its kinds."""
        return body(_SCHEMA, 31, schema)

    def document(
        self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object
    ) -> Iterator[bytes]:
        """Implement `Form.document`: yield the pieces of one openapi.v2 Document, with all maps sorted by name.

        Args:
            head: the members before `paths`, not yet encoded.
            paths: the encoded path items (results of `path`) by API path. Each is removed when it is yielded.
            definitions: the results of `schema` with the kinds, by name. All are removed from the dictionary before the
                first definition is yielded.
            tail: the members after `definitions`, not yet encoded.
        """
        yield body(_DOCUMENT, 16, head)
        yield from pairs((8, 2), paths)
        schemas = {name: _with_kinds(definitions.pop(name)) for name in list(definitions)}
        yield from pairs((9, 1), schemas)
        yield body(_DOCUMENT, 16, tail)


def _with_kinds(definition: Definition) -> bytes:
    kinds = b"" if definition.kinds is None else body({}, 31, {KINDS: definition.kinds})
    return delimited(2, definition.schema + kinds)


def _additional(field: int, value: Any) -> bytes:
    return wrapped(2, flag)(field, value) if isinstance(value, bool) else wrapped(1, _schema)(field, value)


_schema: Final[Value] = message(lambda: _SCHEMA, 31)
_reference: Final[Value] = message({"$ref": (1, text), "description": (2, text)})
_SCHEMA: Final[Table] = {
    "$ref": (1, text),
    "format": (2, text),
    "title": (3, text),
    "description": (4, text),
    "default": (5, anything),
    "multipleOf": (6, double),
    "maximum": (7, double),
    "exclusiveMaximum": (8, flag),
    "minimum": (9, double),
    "exclusiveMinimum": (10, flag),
    "maxLength": (11, integer),
    "minLength": (12, integer),
    "pattern": (13, text),
    "maxItems": (14, integer),
    "minItems": (15, integer),
    "uniqueItems": (16, flag),
    "maxProperties": (17, integer),
    "minProperties": (18, integer),
    "required": (19, many(text)),
    "enum": (20, many(anything)),
    "additionalProperties": (21, _additional),
    "type": (22, wrapped(1, text)),
    "items": (23, wrapped(1, _schema)),
    "allOf": (24, many(_schema)),
    "properties": (25, wrapped(1, named(_schema))),
    "example": (30, anything),
}
_IN: Final[Table] = {"required": (1, flag), "in": (2, text), "description": (3, text), "name": (4, text)}
_IN_PATH: Final[Table] = {**_IN, "type": (5, text), "uniqueItems": (19, flag)}
_QUERY: Final[Table] = {**_IN, "type": (6, text), "uniqueItems": (20, flag)}
_BODY: Final[Table] = {
    "description": (1, text),
    "name": (2, text),
    "in": (3, text),
    "required": (4, flag),
    "schema": (5, _schema),
}


def _parameter(field: int, value: Any) -> bytes:
    if value["in"] == "body":
        return wrapped(1, message(_BODY))(field, value)
    kind = wrapped(3, message(_QUERY)) if value["in"] == "query" else wrapped(4, message(_IN_PATH))
    return wrapped(2, kind)(field, value)


_parameters: Final[Value] = many(either(wrapped(2, _reference), wrapped(1, _parameter)))
_RESPONSE: Final[Table] = {"description": (1, text), "schema": (2, wrapped(1, _schema))}
_security: Final[Value] = many(wrapped(1, named(wrapped(1, many(text)))))
_OPERATION: Final[Table] = {
    "tags": (1, many(text)),
    "summary": (2, text),
    "description": (3, text),
    "operationId": (5, text),
    "produces": (6, many(text)),
    "consumes": (7, many(text)),
    "parameters": (8, _parameters),
    "responses": (9, wrapped(1, named(wrapped(1, message(_RESPONSE))))),
    "schemes": (10, many(text)),
    "deprecated": (11, flag),
    "security": (12, _security),
}
_PATH: Final[Table] = {
    **{
        method: (number, message(_OPERATION, 13))
        for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch"), 2)
    },
    "parameters": (9, _parameters),
}
_INFO: Final[Table] = {"title": (1, text), "version": (2, text), "description": (3, text)}
_API_KEY: Final[Table] = {"type": (1, text), "name": (2, text), "in": (3, text), "description": (4, text)}
_DOCUMENT: Final[Table] = {
    "swagger": (1, text),
    "info": (2, message(_INFO)),
    "parameters": (10, wrapped(1, named(_parameter))),
    "security": (12, _security),
    "securityDefinitions": (13, wrapped(1, named(wrapped(2, message(_API_KEY))))),
}
