"""The types of structured merge, compiled from `SchemaNode`.

A type determines whether a value is a leaf, a map whose members are owned individually, or a list whose elements are
identified by keys or by value. Nodes are compiled on first use and keep their `Type`.

Upstream: k8s.io/kube-openapi/pkg/schemaconv (openapi.go, smd.go) and
sigs.k8s.io/structured-merge-diff/typed/helpers.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.fieldmanager.pathelement import SELF, key_element, scalar_json, value_element
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode
from tetrapod.machinery.types import load

SCALAR: Final = 1
LIST: Final = 2
MAP: Final = 3

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"


class SchemaError(Exception):
    """The error for a value that does not match its type, so that no field set of it can be made."""


class Type:
    """The type of a value: which fields or list elements it has, and whether it is owned as a whole.

    It may allow a scalar, a list and a map at once; then the value decides which one applies.

    Attributes:
        scalar: "numeric", "string", "boolean" or "untyped"; "" if no scalar is allowed.
        takes_list: whether lists are allowed.
        takes_map: whether objects and maps are allowed.
        list_atomic: whether a list is owned as a whole.
        map_atomic: whether an object or map is owned as a whole.
        keys: the key fields of a list's elements, sorted; empty for a set.
        items: the type of a list's elements, or None.
        element: the type of a map's members that are not declared fields; None rejects such members.
        deduced: whether this is a map with arbitrary members and no declared fields.
        built_in: whether values were decoded by a schema, so that `==` is sufficient to compare them, although it does
            not distinguish true from 1.
    """

    __slots__ = (
        "_fields",
        "_keys",
        "_node",
        "_preserve",
        "built_in",
        "deduced",
        "element",
        "items",
        "keys",
        "list_atomic",
        "map_atomic",
        "scalar",
        "takes_list",
        "takes_map",
    )

    def __init__(self, scalar: str = "") -> None:
        self.scalar = scalar
        self.takes_list = self.takes_map = False
        self.list_atomic = self.map_atomic = False
        self.keys: tuple[str, ...] = ()
        self.items: Type | None = None
        self.element: Type | None = None
        self.deduced = False
        self.built_in = False
        self._keys: tuple[tuple[str, Any], ...] = ()
        self._node: SchemaNode | None = None
        self._preserve = False
        self._fields: dict[str, Type | None] = {}
        """The declared fields; the value is None until the field is first used."""

    def field(self, name: str) -> Type | None:
        """Return the type of a declared field, or None if the field is not declared."""
        field_type = self._fields.get(name)
        if field_type is None and name in self._fields:
            assert self._node is not None
            field_type = self._fields[name] = compile_node(self._node.properties[name], preserve=self._preserve)
        return field_type

    def member(self, name: str) -> Type:
        """Return the type of a member of a map, declared as a field or not.

        Raises:
            SchemaError: the field is not declared and the type allows no others.
        """
        member_type = self._fields.get(name) or self.field(name) or self.element
        if member_type is None:
            raise SchemaError(f".{name}: field not declared in schema")
        return member_type

    def kind_of(self, value: Any) -> int:
        """Return whether a value is treated as a MAP, a LIST or a SCALAR.

        It is the value's own kind if the type allows that, else the first of map, scalar and list that the type allows.
        """
        if isinstance(value, dict):
            if self.takes_map:
                return MAP
        elif isinstance(value, list):
            if self.takes_list:
                return LIST
        elif value is not None and self.scalar:
            return SCALAR
        return MAP if self.takes_map else SCALAR if self.scalar else LIST

    def element_of(self, item: Any) -> str:
        """Return the path element of an item of a list that is a set or whose items have keys.

        Raises:
            SchemaError: the item has no key, or is not of a type that the list allows.
        """
        if not self._keys:
            if item.__class__ is str:
                return value_element(item)
            if isinstance(item, dict):
                raise SchemaError("associative list without keys has an element that's a map type")
            if isinstance(item, list):
                raise SchemaError("not supported: associative list with lists as elements")
            if item is None:
                raise SchemaError("associative list without keys has an element that's an explicit null")
            return value_element(item)
        if not isinstance(item, dict):
            description = "a null element" if item is None else "non-map elements"
            raise SchemaError(f"associative list with keys may not have {description}")
        if len(self._keys) == 1:
            name, default = self._keys[0]
            value = item.get(name, default)
            if value is not NO_DEFAULT:
                return f'k:{{"{name}":{scalar_json(value)}}}'
        fields = [(name, value) for name, default in self._keys if (value := item.get(name, default)) is not NO_DEFAULT]
        if not fields:
            names = " ".join(f'"{name}"' for name in self.keys)
            raise SchemaError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return key_element(fields)

    def child(self, element: str) -> Type | None:
        """Return the type of the value at a path element, or None if the type does not determine it.

        Args:
            element: a path element, such as `f:spec` or `k:{"name":"c"}`.
        """
        if element[:2] == "f:" and self.takes_map:
            return self.field(element[2:]) or self.element
        return self.items if self.takes_list and element != SELF else None


def compile_node(node: SchemaNode, *, preserve: bool = False) -> Type:
    """Return the type of a schema, which the node caches.

    Args:
        node: the schema.
        preserve: whether unknown fields are kept because of an enclosing schema.
    """
    # The field and the definition that it refers to share compiled types, but the field may override the map type.
    key = f"fieldmanager {node.map_type} {preserve}"
    compiled: Type | None = node.compiled.get(key)
    if compiled is None:
        # Stored before its parts are compiled, because types may be recursive.
        compiled = node.compiled[key] = Type()
        _fill(compiled, node, preserve)
    return compiled


def compile_root(node: SchemaNode, object_meta: SchemaNode) -> Type:
    """Return the type of a kind, which the node caches.

    `metadata` is always an ObjectMeta, even if the schema of a custom resource says otherwise.

    Args:
        node: the schema of the kind.
        object_meta: the schema of ObjectMeta.
    """
    compiled: Type | None = node.compiled.get("fieldmanager root")
    if compiled is None:
        compiled = node.compiled["fieldmanager root"] = Type()
        _fill(compiled, node, False)
        _add_object_fields(compiled, object_meta)
    return compiled


def _add_object_fields(target: Type, object_meta: SchemaNode) -> None:
    target.takes_map, target.deduced = True, False
    string = Type("string")
    target._fields.update(apiVersion=string, kind=string, metadata=compile_node(object_meta))


def _fill(target: Type, node: SchemaNode, preserve: bool) -> None:
    if node.definition == _QUANTITY:
        target.scalar = "untyped"
    elif node.definition == _RAW_EXTENSION:
        _fill_untyped(target)
    elif node.int_or_string:
        _fill_deduced(target)
    else:
        preserve = preserve or node.preserve_unknown
        match node.type:
            case "object":
                _fill_map(target, node, preserve)
            case "array":
                _fill_list(target, node, preserve)
            case "string":
                target.scalar = "string" if node.format in ("", "byte") else "untyped"
            case "integer" | "number":
                target.scalar = "numeric"
            case "boolean":
                target.scalar = "boolean"
            case _:
                target.scalar = "untyped"
                _fill_list(target, node, preserve)
                _fill_map(target, node, preserve)


def _fill_map(target: Type, node: SchemaNode, preserve: bool) -> None:
    target.takes_map = True
    target.built_in = bool(node.definition)
    target.map_atomic = node.map_type == "atomic"
    target._node, target._preserve = node, preserve and not node.definition
    target._fields = dict.fromkeys(node.properties)
    if node.additional_properties is not None:
        target.element = compile_node(node.additional_properties, preserve=target._preserve)
    elif preserve or not node.properties:
        target.element = DEDUCED
        target.deduced = not node.properties
    if node.embedded_resource:
        _add_object_fields(target, load(OBJECT_META))


def _fill_list(target: Type, node: SchemaNode, preserve: bool) -> None:
    target.takes_list = True
    target.items = UNTYPED if node.items is None else compile_node(node.items, preserve=preserve)
    keys: tuple[str, ...] = ()
    match node.list_type:
        case "map":
            keys = node.list_map_keys
        case "set":
            pass
        case "" if "merge" in node.patch_strategy:
            keys = (node.patch_merge_key,) if node.patch_merge_key else ()
        case _:
            target.list_atomic = True
    target.keys = keys
    target._keys = tuple((name, _default(node.items, name)) for name in sorted(keys))


def _default(node: SchemaNode | None, name: str) -> Any:
    child = node.properties.get(name) if node is not None else None
    return NO_DEFAULT if child is None or child.default is None else child.default


def _fill_untyped(target: Type) -> None:
    """Set the attributes of a type that allows any value, which is owned as a whole.

    Args:
        target: the type, which is modified.
    """
    target.scalar, target.takes_list, target.takes_map, target.list_atomic, target.map_atomic = (
        "untyped",
        True,
        True,
        True,
        True,
    )
    target.items = target.element = UNTYPED


def _fill_deduced(target: Type) -> None:
    """Set the attributes of a type that allows any value: maps are owned by members, lists as a whole.

    Args:
        target: the type, which is modified.
    """
    target.scalar, target.takes_list, target.takes_map, target.list_atomic = "untyped", True, True, True
    target.items, target.element, target.deduced = UNTYPED, DEDUCED, True


UNTYPED: Final = Type()
DEDUCED: Final = Type()
_fill_untyped(UNTYPED)
_fill_deduced(DEDUCED)
