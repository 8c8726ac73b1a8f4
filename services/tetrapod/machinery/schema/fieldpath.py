"""Paths into a schema, as selectableFields and the `fieldPath` of CEL rules contain them.

Examples are `.spec.a` and `.spec['odd.name']`.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, ValidFieldPath.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tetrapod.machinery import field
from tetrapod.machinery.gvk import Object


class PathError(ValueError):
    """The error for an invalid path. The text is upstream's."""


def resolve(text: str, schema: Object | None, *, arrays: bool = True) -> tuple[str, Object | None]:
    """Return the normal form of a field path in a CRD, and the schema of the field that it refers to.

    The schema is None if the field has none.

    Args:
        text: the path, such as `.spec.replicas` or `['a.b']`.
        schema: the schema of the object in which the path begins.
        arrays: whether the notation with brackets is allowed.

    Raises:
        PathError: the path is malformed, or the schema has no such field.
    """
    path = ""
    tokens = _tokens(text)
    for token in tokens:
        if token == "[":
            if not arrays:
                raise PathError("array notation is not allowed")
            name = _quoted(_next(tokens))
            path, schema = _step(path, schema, name)
            if (closing := _next(tokens)) != "]":
                raise PathError(f"expected ] but got {closing}")
        elif token == ".":
            path, schema = _step(path, schema, _next(tokens))
        else:
            raise PathError(f"expected [ or . but got: {token}")
    return path, schema


def _tokens(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + 1
        if text[start] == "'":
            while end < len(text) and not (text[end] == "'" and text[end - 1] != "\\"):
                end += 1
            end += 1
        elif text[start] not in ".[]":
            while end < len(text) and text[end] not in ".[]":
                end += 1
        yield text[start:end]
        start = end


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise PathError("unexpected end of JSON path")
    return token


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise PathError(f"expected single quoted string but got {token}")
    return token[1:-1].replace("\\'", "'").replace("\\\\", "\\")


def _step(path: str, schema: Object | None, name: str) -> tuple[str, Object | None]:
    if schema is None:
        raise PathError("does not refer to a valid field")
    properties: dict[str, Any] | None = schema.get("properties")
    if properties:
        if name not in properties:
            raise PathError("does not refer to a valid field")
        return field.child(path, name), properties[name]
    additional = schema.get("additionalProperties")
    if additional is None or additional is False:
        raise PathError("does not refer to a valid field")
    return field.key(path, name), additional if isinstance(additional, dict) else None
