"""Decoding of built-in objects: the combined effect of Go's JSON decoder, the versioned defaults and the encoder.

One compiled pass over the parsed JSON has five effects:
- Types are checked. A wrong type raises `DecodeError` (a 400).
- Unknown fields are reported.
- Nulls and empty values of fields with `omitempty` are dropped. Fields without it get their zero values.
- Quantities, times and base64 are brought into canonical form.
- The defaults of the schema are set.

It is for built-in types only: custom resources keep the values that clients send (see pruning.py and defaulting.py).

Upstream: sigs.k8s.io/json and the custom marshalers of k8s.io/apimachinery.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import unknown_fields
from tetrapod.machinery.schema.decode_errors import DecodeError, Mismatch, UnknownField
from tetrapod.machinery.schema.decode_scalars import ABSENT, Walk, go_type, scalar, zero_of_scalar
from tetrapod.machinery.schema.decode_special import nonzero_duration, resource_amount, special
from tetrapod.machinery.schema.empty_values import DISTINGUISHED_BELOW, DISTINGUISHED_FROM_ABSENT
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

__all__ = ["DecodeError", "decode", "first_error", "zero"]

Make: TypeAlias = Callable[[], Any]

_CORE: Final = "io.k8s.api.core.v1."


def decode(node: SchemaNode, obj: Object) -> list[str]:
    """Convert an object in place to the form that kube-apiserver would have after decoding and encoding it.

    Returns:
        The paths of unknown fields, which are dropped, in document order. Beyond MAX_ERRORS paths, the list has
        placeholders, which `error_limits.recorded` removes and counts.

    Raises:
        DecodeError: a value does not have the type of its field.
    """
    walk = object_walk(node)
    try:
        walk(obj)
    except UnknownField:
        unknown_paths = unknown_fields.drop(node, obj)
        try:
            walk(obj)
        except Mismatch as mismatch:
            raise _reported_error(walk, obj, mismatch) from None
        return unknown_paths
    except Mismatch as mismatch:
        raise _reported_error(walk, obj, mismatch) from None
    return []


def first_error(node: SchemaNode, obj: Object) -> DecodeError | None:
    """Decode an object of a built-in type in place, and return the first error, or None if it matches its type.

    The first error is that of the first member, in the order of `obj`, whose value does not match its type. `decode`
    instead raises the error that Go's decoder would report.

    Args:
        node: the schema of the object.
        obj: the object. Its unknown fields are dropped, and are not errors. It is converted as by `decode`; after an
            error, only partly.
    """
    unknown_fields.drop(node, obj)
    try:
        object_walk(node)(obj)
    except DecodeError as error:
        return error
    return None


def _reported_error(walk: Walk, obj: Object, first: Mismatch) -> DecodeError:
    """Return the error that Go's decoder would report for an object with several errors.

    It is the first error that aborts decoding or, if none does, the first error. The object is modified: values with
    errors are removed, to find the next error.

    Args:
        walk: the decoder of the object.
        obj: the object.
        first: the first error.
    """
    error: DecodeError = first
    while isinstance(error, Mismatch) and not error.ends and error.place is not None:
        container, field = error.place
        if isinstance(container, list):
            container[field] = None  # the zero value keeps the indexes of the other elements
        else:
            del container[field]
        try:
            walk(obj)
        except UnknownField:
            break
        except DecodeError as next_error:
            # otherwise the traceback refers to this frame and the frame to the traceback, a reference cycle
            error = next_error.with_traceback(None)
        else:
            break
    return error if error.ends else first


def zero(node: SchemaNode) -> Any:
    """Return the zero value of a type as Go encodes it: "", 0, false, a struct with such values, or None."""
    if node.type == "object" and node.properties:
        return object_walk(node)({})
    if node.type == "object" and node.definition and node.additional_properties is None and not node.preserve_unknown:
        return {}  # a struct without fields
    return zero_of_scalar(node)


def without_defaults(node: SchemaNode) -> Object:
    """Return an object of a kind without values as Go encodes it, which has no defaults."""
    obj: Object = zero(node)
    _drop_defaults(node, obj)
    return obj


def _drop_defaults(node: SchemaNode, obj: Object) -> None:
    for name in list(obj):
        child = node.properties[name]
        if child.presence not in ("=", "n"):
            del obj[name]
        elif isinstance(obj[name], dict):
            _drop_defaults(child, obj[name])


def object_walk(node: SchemaNode) -> Walk:
    """Return the decoder of a struct: a function that decodes an object in place and returns it.

    It is compiled once for all references to the type. It raises `Mismatch` or `UnknownField`.
    """
    walk = node.compiled.get("decode")
    if walk is None:
        walk = node.compiled["decode"] = _compile_object(node)
    return walk


def _compile_object(node: SchemaNode) -> Walk:
    plain: dict[str, type] = {}
    walks: dict[str, Walk] = {}
    always: dict[str, Make] = {}
    for name, child in node.properties.items():
        if child.type in _PLAIN and not child.format and not child.definition:
            plain[name] = _PLAIN[child.type]
        walks[name] = _lazily(walks, name, child, node)
        if make := _made_when_absent(child):
            always[name] = make
    return _struct_walk(node, plain, walks, always)


_PLAIN: Final = {"string": str, "boolean": bool}


def _struct_walk(node: SchemaNode, plain: dict[str, type], walks: dict[str, Walk], always: dict[str, Make]) -> Walk:
    """Return the decoder of a struct.

    Args:
        node: the schema of the struct.
        plain: the fields whose values need no decoding if they are not empty and of the given Python type.
        walks: the decoders of all fields.
        always: functions that make the values of fields that are written even if they are absent.
    """
    plain_type = plain.get
    walk_of = walks.get
    always_names = frozenset(always)

    def walk(obj: Any) -> Any:
        if obj.__class__ is not dict:
            raise Mismatch(obj, go_type(node))
        dropped = None
        for key, value in obj.items():
            if value and plain_type(key) is value.__class__:
                continue
            child = walk_of(key)
            if child is None:
                raise UnknownField
            try:
                result = child(value)
            except Mismatch as mismatch:
                mismatch.under(node.definition, key)
                if mismatch.place is None:
                    mismatch.place = obj, key
                raise
            if result is not value:
                if result is ABSENT:
                    dropped = [*dropped, key] if dropped else [key]
                else:
                    obj[key] = result
        if dropped:
            for key in dropped:
                del obj[key]
        if not always_names <= obj.keys():
            for key, make in always.items():
                if key not in obj:
                    obj[key] = make()
        return obj

    return walk


def _lazily(walks: dict[str, Walk], name: str, child: SchemaNode, parent: SchemaNode) -> Walk:
    """Return a decoder of a field that compiles the actual decoder when it is first called.

    It then replaces itself with the actual decoder in `walks`.

    Args:
        walks: the decoders of the struct's fields by name.
        name: the name of the field.
        child: the schema of the field.
        parent: the schema of the struct.
    """

    def first(value: Any) -> Any:
        walk = field_walk(child, parent)
        if (parent.definition, name) in DISTINGUISHED_FROM_ABSENT:
            walk = _keeping_empty(walk, _KINDS[child.type])
        elif members := DISTINGUISHED_BELOW.get((parent.definition, name)):
            walk = _keeping_members(walk, {member: _KINDS[child.properties[member].type] for member in members})
        walks[name] = walk
        return walk(value)

    return first


_KINDS: Final = {"array": list, "object": dict, "string": str}


def _keeping_empty(walk: Walk, kind: type) -> Walk:
    """Return a decoder that keeps an empty value of the type `kind`, and otherwise does what `walk` does."""
    return lambda value: value if value.__class__ is kind and not value else walk(value)


def _made_when_absent(child: SchemaNode) -> Make | None:
    """Return a function that makes the value of an absent field, or None if the field stays absent.

    The value is a default, a zero value or null.

    Args:
        child: the schema of the field.
    """
    if child.presence == "n":
        return lambda: None
    if child.presence == "=" and child.definition:
        return lambda: zero(child)
    default = child.default
    if default is NO_DEFAULT:
        return None
    if isinstance(default, dict | list):  # an empty one belongs to a struct, which is made by `zero` if at all
        return (lambda: copy_value(default)) if default else None
    return (lambda: default) if default or child.presence else None


def field_walk(child: SchemaNode, parent: SchemaNode) -> Walk:
    """Return the decoder of a field.

    It decodes the type and applies the field's rule (`presence`) for empty and absent values.

    Args:
        child: the schema of the field.
        parent: the schema of the struct that has the field.
    """
    if child.definition and (walk := special(child, field_walk)) is not None:
        return walk if child.presence == "=" or walk is nonzero_duration else _pointer(walk)
    if child.type == "object":
        if child.properties or child.additional_properties is None:
            return _struct_field(child)
        return _collection_field(_map_walk(child, parent), child)
    if child.type == "array":
        return _collection_field(_list_walk(child, parent), child)
    return scalar(child)


def _pointer(walk: Walk) -> Walk:
    """Return a decoder for which null makes the field absent, as for a Go pointer with `omitempty`.

    Other values are decoded by `walk`.
    """
    return lambda value: ABSENT if value is None else walk(value)


def _struct_field(child: SchemaNode) -> Walk:
    walk = object_walk(child)
    if child.presence == "n":
        return lambda value: None if value is None else walk(value)
    if child.presence != "0":
        return _pointer(walk)
    zero_value = walk({})

    def omit_zero(value: Any) -> Any:
        if value is None:
            return ABSENT
        result = walk(value)
        return ABSENT if result == zero_value else result

    return omit_zero


def _collection_field(walk: Walk, child: SchemaNode) -> Walk:
    if child.presence == "n":  # An empty value is kept, because its sender owns it; see empty_values.py.
        return lambda value: None if value is None else walk(value)
    return lambda value: walk(value) if value else _absent_if_empty(value, child)


def _absent_if_empty(value: Any, child: SchemaNode) -> Any:
    """Return ABSENT for the null or empty value of a field that is a list or a map.

    Args:
        value: a value that is null, empty, 0, "" or false.
        child: the schema of the field.

    Raises:
        Mismatch: the value is 0, "" or false, or an empty collection of the wrong type.
    """
    if value is not None and value.__class__ is not (list if child.type == "array" else dict):
        raise Mismatch(value, go_type(child))
    return ABSENT


def _list_walk(node: SchemaNode, parent: SchemaNode) -> Walk:
    items = node.items
    assert items is not None
    element = _element_walk(items, parent)
    plain = _PLAIN.get(items.type) if not items.format and not items.definition else None

    def walk(values: Any) -> Any:
        if values.__class__ is not list:
            raise Mismatch(values, go_type(node))
        for index, value in enumerate(values):
            if value.__class__ is plain:
                continue
            try:
                result = element(value)
            except Mismatch as mismatch:
                if mismatch.place is None:
                    mismatch.place = values, index
                raise
            if result is not value:
                values[index] = result
        return values

    return walk


def _map_walk(node: SchemaNode, parent: SchemaNode) -> Walk:
    values = node.additional_properties
    assert values is not None
    rounds = values.format == "quantity" and parent.definition.startswith(_CORE)
    element = resource_amount if rounds else _element_walk(values, parent)
    plain = _PLAIN.get(values.type) if not values.format and not values.definition else None

    def walk(obj: Any) -> Any:
        if obj.__class__ is not dict:
            raise Mismatch(obj, go_type(node))
        for key, value in obj.items():
            if value.__class__ is plain:
                continue
            result = element(value)
            if result is not value:
                obj[key] = result
        return obj

    return walk


def _element_walk(node: SchemaNode, parent: SchemaNode) -> Walk:
    """Return the decoder of the elements of a list, or of the values of a map.

    Elements are never dropped: empty ones are kept, and null becomes the zero value. The schema is compiled when the
    first element is decoded.

    Args:
        node: the schema of an element.
        parent: the schema of the struct that has the list or map as a field.
    """
    walk: Walk | None = None

    def element(value: Any) -> Any:
        nonlocal walk
        if walk is None:
            walk = object_walk(node) if node.type == "object" and node.properties else field_walk(node, parent)
        if value is None:
            return zero(node)
        result = walk(value)
        if result is ABSENT:
            return "" if node.format == "byte" else value
        return result

    return element


def _keeping_members(walk: Walk, kinds: dict[str, type]) -> Walk:
    """Return a decoder of a struct that keeps empty values of some members, and otherwise does what `walk` does.

    Args:
        walk: the decoder of the struct.
        kinds: the members, each with the Python type of its empty value.
    """

    def keeping(value: Any) -> Any:
        if value.__class__ is not dict:
            return walk(value)
        kept = {
            name: value[name] for name, kind in kinds.items() if value.get(name).__class__ is kind and not value[name]
        }
        result = walk(value)
        if kept and result is not ABSENT:
            result.update(kept)
        return result

    return keeping
