"""`SchemaNode`: one node of a schema, shared by all packages that work on schemas.

Nodes are built lazily, from the generated data of built-in types (`types.definitions`) or from a CRD's structural
schema. They direct pruning, defaulting, validation, strategic merge patch, server-side apply and OpenAPI output. Built
nodes are immutable, and the nodes of a shared definition are shared, so recursive types are cyclic.
"""

from __future__ import annotations

from typing import Any, Final

NO_DEFAULT: Final = object()


class SchemaNode:
    """A node of a schema. Its attributes are upstream's OpenAPI keywords; None or an empty value means unset.

    `type` is "object", "array", "string", "integer", "number", "boolean" or "" (anything).
    A map is an object with `additional_properties` and no `properties`.

    Attributes:
        additional_properties: the schema of the values of a map.
        compiled: a cache of what other packages compile from the node, by a name for each use.
        default: the default value, or NO_DEFAULT.
        definition: the name of the definition that the node describes, such as "io.k8s.api.core.v1.PodSpec", or "".
        list_type: "atomic", "set", "map" or "".
        map_type: "atomic", "granular" or "".
        patch_merge_key: the field that identifies the elements of a list, such as "name".
        patch_strategy: any of "merge", "replace" and "retainKeys".
        presence: when Go writes the field of a built-in type. "" means unless it is empty or zero. "*" (a pointer)
            means if it was given. "=" means always. "0" means unless it is a struct in which no field is set. "n" means
            always, with null for an empty list, map or pointer.
        preserve_unknown: x-kubernetes-preserve-unknown-fields.
        validations: the keywords of a CRD schema that validate values (minimum, pattern, anyOf,
            x-kubernetes-validations).
    """

    __slots__ = (
        "additional_properties",
        "compiled",
        "default",
        "definition",
        "embedded_resource",
        "enum",
        "format",
        "int_or_string",
        "items",
        "list_map_keys",
        "list_type",
        "map_type",
        "nullable",
        "patch_merge_key",
        "patch_strategy",
        "presence",
        "preserve_unknown",
        "properties",
        "required",
        "type",
        "validations",
    )

    additional_properties: SchemaNode | None
    compiled: dict[str, Any]
    default: Any
    definition: str
    embedded_resource: bool
    enum: tuple[Any, ...] | None
    format: str
    int_or_string: bool
    items: SchemaNode | None
    list_map_keys: tuple[str, ...]
    list_type: str
    map_type: str
    nullable: bool
    patch_merge_key: str
    patch_strategy: frozenset[str]
    presence: str
    preserve_unknown: bool
    properties: dict[str, SchemaNode]
    required: tuple[str, ...]
    type: str
    validations: dict[str, Any]

    def __init__(self, type: str = "") -> None:
        self.type = type
        self.additional_properties = None
        self.compiled = {}
        self.default = NO_DEFAULT
        self.definition = ""
        self.embedded_resource = False
        self.enum = None
        self.format = ""
        self.int_or_string = False
        self.items = None
        self.list_map_keys = ()
        self.list_type = ""
        self.map_type = ""
        self.nullable = False
        self.patch_merge_key = ""
        self.patch_strategy = frozenset()
        self.presence = ""
        self.preserve_unknown = False
        self.properties = {}
        self.required = ()
        self.validations = {}
