"""`decode` for custom resources: defaults, metadata, pruning, nulls and embedded resources, in upstream's order.

Upstream: the unstructuredDefaulter and unstructuredSchemaCoercer of k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import defaulting, objectmeta, pruning
from tetrapod.machinery.shapes.node import SchemaNode


def decode(node: SchemaNode, obj: Object, *, preserve_unknown: bool = False, keep_nulls: bool = False) -> list[str]:
    """Bring a custom resource (changed in place) into the form that is stored and answered; returns the unknown fields.
    `keep_nulls`: what an apply leaves is not decoded again upstream, and keeps nulls that its schema forbids.

    Raises:
        DecodeError: the metadata is malformed.
        CoerceError: the metadata of an embedded resource is malformed.
    """
    defaulting.apply(node, obj)
    unknown = objectmeta.coerce_root(obj)
    if not preserve_unknown:
        unknown += pruning.prune(node, obj)
        if not keep_nulls:
            defaulting.drop_nulls(node, obj)
    return unknown + objectmeta.coerce_embedded(node, obj)


def coerce(node: SchemaNode, obj: Object) -> None:
    """`decode` of what was stored or converted, without defaults.

    Raises:
        DecodeError: the metadata is malformed.
        CoerceError: the metadata of an embedded resource is malformed.
    """
    objectmeta.coerce_root(obj)
    pruning.prune(node, obj)
    defaulting.drop_nulls(node, obj)
    objectmeta.coerce_embedded(node, obj)


def decode_unknown(obj: Object) -> list[str]:
    """`decode` of what says that it is of another kind, of which nothing but the metadata is known.

    Raises:
        DecodeError: the metadata is malformed.
    """
    return objectmeta.coerce_root(obj)
