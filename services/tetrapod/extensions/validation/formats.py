"""Formats that nobody checks: a schema may name them, with a warning.

Upstream: GetUnrecognizedFormats of apiextensions-apiserver/pkg/apiserver/validation/formats.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tetrapod.machinery.gvk import Object

RECOGNIZED: Final = frozenset(
    {
        "bsonobjectid",
        "byte",
        "cidr",
        "creditcard",
        "date",
        "datetime",
        "double",
        "duration",
        "email",
        "float",
        "float32",
        "float64",
        "hexcolor",
        "hostname",
        "int32",
        "int64",
        "ipv4",
        "ipv6",
        "isbn",
        "isbn10",
        "isbn13",
        "k8slongname",
        "k8sshortname",
        "mac",
        "password",
        "rgbcolor",
        "ssn",
        "uint32",
        "uint64",
        "uri",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
    }
)
"""Dashes do not count."""
_ONE: Final = ("items", "not", "additionalProperties", "additionalItems")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("properties", "patternProperties", "definitions", "dependencies")


def unrecognized_formats(crd: Object) -> list[str]:
    """Those of all versions, in order."""
    found = []
    for version in (crd.get("spec") or {}).get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            found += [f for s in walk(schema) if (f := s.get("format")) and f.replace("-", "") not in RECOGNIZED]
    return found


def walk(schema: Any) -> Iterator[Object]:
    """A schema and all schemas in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    below: list[Any] = [schema.get(key) for key in _ONE]
    for key in _LISTS:
        below += schema.get(key) or ()
    for key in _MAPS:
        below += (schema.get(key) or {}).values()
    for child in below:
        for one in child if isinstance(child, list) else (child,):
            yield from walk(one)
