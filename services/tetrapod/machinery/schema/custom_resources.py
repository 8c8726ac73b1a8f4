"""Decoding of custom resources: defaults, metadata, pruning, nulls and embedded resources, in upstream's order.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, unstructuredDefaulter and
unstructuredSchemaCoercer.
"""

from __future__ import annotations

from contextlib import suppress

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import defaulting, objectmeta, pruning
from tetrapod.machinery.schema_node import SchemaNode


def decode(node: SchemaNode, obj: Object, *, preserve_unknown: bool = False, keep_nulls: bool = False) -> list[str]:
    """Convert a custom resource of a request, in place, to the form that is stored and returned to clients.

    Defaults are set, unknown fields are removed, and metadata is decoded.

    Args:
        node: the schema.
        obj: the custom resource.
        preserve_unknown: whether unknown fields, and nulls that the schema forbids, are kept (preserveUnknownFields of
            the CRD).
        keep_nulls: whether nulls that the schema forbids are kept. Upstream does not decode the result of an apply
            again, so it keeps them.

    Returns:
        The paths of unknown fields: those of the metadata, then others. It may have placeholders, which
        `error_limits.recorded` removes and counts.

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
    return unknown + objectmeta.coerce_embedded(node, obj, keep_nulls=keep_nulls)


def coerce(node: SchemaNode, obj: Object) -> None:
    """Convert a custom resource from storage or a conversion webhook in place, without setting defaults.

    The metadata is decoded, and unknown fields and nulls that the schema forbids are removed.

    Args:
        node: the schema of the resource.
        obj: the custom resource.

    Raises:
        DecodeError: the metadata is malformed.
        CoerceError: the metadata of an embedded resource is malformed.
    """
    objectmeta.coerce_root(obj)
    pruning.prune(node, obj)
    defaulting.drop_nulls(node, obj)
    objectmeta.coerce_embedded(node, obj)


def decode_stored(node: SchemaNode, obj: Object) -> None:
    """Convert a stored custom resource in place to the current schema: prune it, repair metadata and set defaults.

    Malformed metadata is dropped instead of being an error, because a stored object must be readable.
    """
    objectmeta.repair_root(obj)
    pruning.prune(node, obj)
    objectmeta.repair_embedded(node, obj)
    set_defaults(node, obj)
    defaulting.drop_nulls(node, obj)


def read_back(node: SchemaNode, obj: Object, *, defaults: bool) -> None:
    """Convert a valid custom resource in place to the form in which it is read after it has been stored.

    Args:
        node: the schema of the resource.
        obj: the custom resource.
        defaults: whether to set defaults.
    """
    pruning.prune(node, obj)
    objectmeta.repair_embedded(node, obj)
    if defaulting.may_have_nulls(node):
        defaulting.drop_nulls(node, obj)
    if defaults:
        set_defaults(node, obj)


def set_defaults(node: SchemaNode, obj: Object) -> None:
    """Set the defaults of a valid custom resource in place, without unknown metadata fields of embedded resources.

    Malformed metadata of embedded resources is kept, because an object that is stored must be readable.
    """
    defaulting.apply(node, obj)
    with suppress(objectmeta.CoerceError):
        objectmeta.coerce_embedded(node, obj)


def decode_unknown(obj: Object) -> list[str]:
    """Decode the metadata of an object whose kind is not that of the endpoint, in place, and return its unknown fields.

    No schema applies to other fields of such an object.

    Raises:
        DecodeError: the metadata is malformed.
    """
    return objectmeta.coerce_root(obj)
