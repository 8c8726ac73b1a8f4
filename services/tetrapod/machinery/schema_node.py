"""`SchemaNode`: one node of a schema, shared by all packages that work on schemas.

Nodes are built lazily, from the generated data of built-in types (`types.definitions`) or from a CRD's structural
schema. They direct pruning, defaulting, validation, strategic merge patch, server-side apply and OpenAPI output. Built
nodes are immutable, and the nodes of a shared definition are shared, so recursive types are cyclic.
"""

from __future__ import annotations

from typing import Any, Final

NO_DEFAULT: Final = object()

PRESENCE: Final = {
    "": "omitempty: vanishes when it is empty or zero",
    "*": "a pointer: written when it was given, zero or not",
    "=": "a value: always written, even when it is zero",
    "0": "a struct with omitzero: vanishes when nothing is set in it",
    "n": "a list, map or pointer without omitempty: null when it is empty",
}


class SchemaNode:
    """A node of a schema. Its attributes are upstream's OpenAPI keywords; None or an empty value means unset.

    `type` is "object", "array", "string", "integer", "number", "boolean" or "" (anything).
    A map is an object with `additional_properties` and no `properties`.
    """

    __slots__ = (
        "additional_properties",  # SchemaNode | None
        "compiled",  # a cache of what other packages compile from the node, by a name for each use
        "default",  # the value, or NO_DEFAULT
        "definition",  # "io.k8s.api.core.v1.PodSpec", or ""
        "embedded_resource",
        "enum",  # tuple | None
        "format",
        "int_or_string",
        "items",  # SchemaNode | None
        "list_map_keys",  # tuple[str, ...]
        "list_type",  # "atomic" | "set" | "map" | ""
        "map_type",  # "atomic" | "granular" | ""
        "nullable",
        "patch_merge_key",  # key of a list's elements, such as "name"
        "patch_strategy",  # frozenset of "merge", "replace", "retainKeys"
        "presence",  # how Go writes the field of a built-in type; see PRESENCE
        "preserve_unknown",  # x-kubernetes-preserve-unknown-fields
        "properties",  # dict[str, SchemaNode]
        "required",  # tuple[str, ...]
        "type",
        # dict of a CRD schema's keywords that validate values (minimum, pattern, anyOf, …, x-kubernetes-validations)
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
