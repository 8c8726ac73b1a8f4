"""Loads configuration files (YAML or JSON) of known kinds, strictly and with upstream's error texts.

Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/serializer (EnableStrict), as used by pkg/apis/apiserver/load,
LoadFromData
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import json as json_serializer
from tetrapod.machinery.serializer import yaml as yaml_serializer
from tetrapod.machinery.serializer.errors import Decoded, DecodeError
from tetrapod.machinery.serializer.type_meta import recognize, syntax_text

Kinds = Mapping[tuple[str, str], SchemaNode]
"""Schemas by (apiVersion, kind), corresponding to upstream's scheme."""

SCHEME: Final = "pkg/runtime/scheme.go:111"
"""Upstream's schemes of configuration files are named after the source line that creates them."""


class NotRegistered(ValueError):
    """The error of a file without a kind or apiVersion, or with a kind that the loader does not know."""


def load(data: bytes, kinds: Kinds, *, strict: bool = True) -> Object:
    """Return the object in a file (YAML: its first document), checked against the schema of its kind.

    Empty values that Go would omit are removed.

    Args:
        data: the content of the file.
        kinds: the schemas of the kinds that are allowed, by apiVersion and kind.
        strict: whether unknown and repeated fields are errors; otherwise they are ignored.

    Raises:
        NotRegistered: the kind or apiVersion is missing or unknown.
        ValueError: the syntax, a type or a field is wrong. The text is upstream's.
    """
    is_json = data.lstrip()[:1] == b"{"
    decoded = _parse(data, is_json)
    obj, api_version, kind = recognize(decoded.obj)
    text = data.decode("utf-8", "replace")
    if not kind:
        raise NotRegistered(f"Object 'Kind' is missing in '{text}'")
    if not api_version:
        raise NotRegistered(f"Object 'apiVersion' is missing in '{text}'")
    shape = kinds.get((api_version, kind))
    if shape is None:
        raise not_registered(kind, api_version)
    check(obj, shape, data if is_json else None, decoded.duplicates, strict=strict)
    return obj


def not_registered(kind: str, api_version: str) -> NotRegistered:
    """Return (not raise) upstream's error for a kind that the loader does not know."""
    return NotRegistered(
        f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme {go_quote(SCHEME)}"
    )


def check(obj: Object, shape: SchemaNode, source: bytes | None, duplicates: list[str], *, strict: bool) -> None:
    """Check `obj` against a schema, and remove empty and unknown fields from it in place.

    Args:
        obj: the decoded object.
        shape: the schema.
        source: the text of the object if it is JSON, None if it is YAML. Strict errors of JSON are in the text's order.
        duplicates: the error texts of repeated keys, from the decoder of JSON or YAML.
        strict: whether unknown and repeated fields are errors.

    Raises:
        ValueError: a value has a wrong type, or, if `strict`, fields are unknown or repeated.
    """
    try:
        unknown = typed.decode(shape, obj)
    except typed.DecodeError as error:
        raise ValueError(str(error)) from None
    if not strict or not (unknown or duplicates):
        return
    if source is not None:
        texts = json_serializer.strict_errors(source, unknown, shape)
    else:
        texts = [yaml_serializer.strict_text(duplicates)] if duplicates else []
        texts += [f'unknown field "{path}"' for path in unknown]
    raise ValueError(f"strict decoding error: {', '.join(texts)}")


def _parse(data: bytes, is_json: bool) -> Decoded:
    if not is_json:
        return yaml_serializer.decode(data)
    try:
        return json_serializer.decode(data)
    except DecodeError as error:
        raise DecodeError(syntax_text(error)) from None
