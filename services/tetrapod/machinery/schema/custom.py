"""`decode` for custom resources: defaults, metadata, pruning, nulls and embedded resources, in upstream's order.

Upstream: the unstructuredDefaulter and unstructuredSchemaCoercer of k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import defaulting, objectmeta, pruning
from tetrapod.machinery.schema.node import SchemaNode


def decode(node: SchemaNode, obj: Object, *, preserve_unknown: bool = False) -> list[str]:
    """Bring a custom resource (changed in place) into the form that is stored and answered; returns the unknown fields.

    Raises:
        DecodeError: the metadata is malformed.
        CoerceError: the metadata of an embedded resource is malformed.
    """
    whole_numbers(obj)
    defaulting.apply(node, obj)
    unknown = objectmeta.coerce_root(obj)
    if not preserve_unknown:
        unknown += pruning.prune(node, obj)
        defaulting.drop_nulls(node, obj)
    return unknown + objectmeta.coerce_embedded(node, obj)


def whole_numbers(value: Any) -> None:
    """Numbers such as 1.0 or 1e3 become integers, as Go writes them, and integers beyond 64 bits floats; in place."""
    items: Any = value.items() if value.__class__ is dict else enumerate(value) if value.__class__ is list else ()
    for key, item in items:
        kind = item.__class__
        if kind is dict or kind is list:
            whole_numbers(item)
        elif kind is float and item.is_integer() and abs(item) < _FLOAT_LIMIT:
            value[key] = int(item)
        elif kind is int and not -_INT_LIMIT <= item < _INT_LIMIT:
            value[key] = float(item)


_INT_LIMIT: Final = 1 << 63
_FLOAT_LIMIT: Final = float(1 << 53)
"""Greater ones are told from integers by validation: they do not count as such."""
