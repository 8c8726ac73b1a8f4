"""`decode`: what Go's JSON decoder, the versioned defaults and the encoder together make of a built-in object.

One compiled pass over the decoded JSON checks the types (a refusal is `DecodeError`, a 400), finds unknown fields, drops nulls
and empty values with `omitempty`, writes the values without, canonicalises quantities, times and base64, and sets the
defaults that the schema names. Follows sigs.k8s.io/json and k8s.io/apimachinery's custom marshalers. Built-in types only:
custom resources keep what they are sent (see pruning.py, defaulting.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import unknown
from tetrapod.machinery.schema.decode_errors import DecodeError, Mismatch, UnknownField
from tetrapod.machinery.schema.decode_scalars import ABSENT, Walk, go_type, scalar, zero_of_scalar
from tetrapod.machinery.schema.decode_special import resource_amount, special
from tetrapod.machinery.schema.emptied import TOLD_BELOW, TOLD_FROM_ABSENT
from tetrapod.machinery.shapes.node import NO_DEFAULT, SchemaNode

__all__ = ["DecodeError", "decode", "first_error", "zero"]

Make: TypeAlias = Callable[[], Any]

_CORE: Final = "io.k8s.api.core.v1."


def decode(node: SchemaNode, obj: Object) -> list[str]:
    """Bring `obj` (changed in place) into the form in which the real server would have encoded it again.

    Returns the paths of unknown fields, which are dropped, in document order.

    Raises:
        DecodeError: a value is not of its field's type.
    """
    walk = object_walk(node)
    try:
        walk(obj)
    except UnknownField:
        found = unknown.drop(node, obj)
        try:
            walk(obj)
        except Mismatch as mismatch:
            raise _told(walk, obj, mismatch) from None
        return found
    except Mismatch as mismatch:
        raise _told(walk, obj, mismatch) from None
    return []


def first_error(node: SchemaNode, obj: Object) -> DecodeError | None:
    """The first mistake in `obj` (changed in place) in the order of its members; unknown fields are none."""
    unknown.drop(node, obj)
    try:
        object_walk(node)(obj)
    except DecodeError as error:
        return error
    return None


def _told(walk: Walk, obj: Object, first: Mismatch) -> DecodeError:
    """Of several mistakes the one that Go's decoder tells: the first that ends it, else the first."""
    mistake: DecodeError = first
    while isinstance(mistake, Mismatch) and not mistake.ends and mistake.place is not None:
        within, field = mistake.place
        if isinstance(within, list):
            within[field] = None  # a zero value, that leaves the others their places
        else:
            del within[field]
        try:
            walk(obj)
        except UnknownField:
            break
        except DecodeError as another:
            mistake = another
        else:
            break
    return mistake if mistake.ends else first


def zero(node: SchemaNode) -> Any:
    """The zero value of a type as Go writes it."""
    if node.type == "object" and node.properties:
        return object_walk(node)({})
    return zero_of_scalar(node)


def object_walk(node: SchemaNode) -> Walk:
    """The decoder of a struct, compiled once for all references to it."""
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
    expected = plain.get
    walk_of = walks.get
    needed = frozenset(always)

    def walk(obj: Any) -> Any:
        if obj.__class__ is not dict:
            raise Mismatch(obj, go_type(node))
        dropped = None
        for key, value in obj.items():
            if value and expected(key) is value.__class__:
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
        if not needed <= obj.keys():
            for key, make in always.items():
                if key not in obj:
                    obj[key] = make()
        return obj

    return walk


def _lazily(walks: dict[str, Walk], name: str, child: SchemaNode, parent: SchemaNode) -> Walk:
    """Compile the decoder of a field when a value of it comes by."""

    def first(value: Any) -> Any:
        walk = field_walk(child, parent)
        if (parent.definition, name) in TOLD_FROM_ABSENT:
            walk = _keeping_empty(walk, _KINDS[child.type])
        elif members := TOLD_BELOW.get((parent.definition, name)):
            walk = _keeping_members(walk, {member: _KINDS[child.properties[member].type] for member in members})
        walks[name] = walk
        return walk(value)

    return first


_KINDS: Final = {"array": list, "object": dict, "string": str}


def _keeping_empty(walk: Walk, kind: type) -> Walk:
    return lambda value: value if value.__class__ is kind and not value else walk(value)


def _made_when_absent(child: SchemaNode) -> Make | None:
    """What is written of a field that the object does not have: a default, a zero value, null, or (None) nothing."""
    if child.presence == "n":
        return lambda: None
    if child.presence == "=" and child.definition:
        return lambda: zero(child)
    default = child.default
    if default is not NO_DEFAULT and not isinstance(default, dict | list) and (default or child.presence):
        return lambda: default
    return None


def field_walk(child: SchemaNode, parent: SchemaNode) -> Walk:
    """The decoder of a field's value: of its type, then what its presence makes of an empty or absent one."""
    if child.definition and (walk := special(child, field_walk)) is not None:
        return _pointer(walk) if child.presence != "=" else walk
    if child.type == "object":
        if child.properties or child.additional_properties is None:
            return _struct_field(child)
        return _collection_field(_map_walk(child, parent), child)
    if child.type == "array":
        return _collection_field(_list_walk(child, parent), child)
    return scalar(child)


def _pointer(walk: Walk) -> Walk:
    return lambda value: ABSENT if value is None else walk(value)


def _struct_field(child: SchemaNode) -> Walk:
    walk = object_walk(child)
    if child.presence == "n":
        return lambda value: None if value is None else walk(value)
    if child.presence != "0":
        return _pointer(walk)
    nothing = walk({})

    def omit_zero(value: Any) -> Any:
        if value is None:
            return ABSENT
        result = walk(value)
        return ABSENT if result == nothing else result

    return omit_zero


def _collection_field(walk: Walk, child: SchemaNode) -> Walk:
    if child.presence == "n":  # an empty one is owned by who sends it; see emptied.py
        return lambda value: None if value is None else walk(value)
    return lambda value: walk(value) if value else _nothing(value, child)


def _nothing(value: Any, child: SchemaNode) -> Any:
    """Of a falsy value: null and an empty collection of the right type are nothing; 0, "" and false are mistakes."""
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
    amounts = values.format == "quantity" and parent.definition.startswith(_CORE)
    element = resource_amount if amounts else _element_walk(values, parent)
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
    """An element is never left out: an empty one stays, and null is the zero value."""
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
    def keeping(value: Any) -> Any:
        if value.__class__ is not dict:
            return walk(value)
        kept = {name: value[name] for name, kind in kinds.items() if value.get(name).__class__ is kind and not value[name]}
        result = walk(value)
        if kept and result is not ABSENT:
            result.update(kept)
        return result

    return keeping
