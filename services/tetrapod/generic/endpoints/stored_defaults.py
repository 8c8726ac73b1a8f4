"""`DefaultsOfKind`: the defaults of a built-in kind, for its stored objects.

Another release, or another program, may have stored an object without a field that has a default now. The object is
decoded like a request in the version in which it is stored.
Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/versioning/versioning.go, codec.Decode
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from tetrapod.generic.endpoints.decoding import Decoder, ShapeError
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.config import Mistyped
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.raw_extensions import beside_fields, into_fields, raw_paths
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

_ZERO_VALUES: Final[tuple[Any, ...]] = ({}, [], "", 0)
"""Defaults of the schema that decoding sets or omits as zero values, so that a stored object has them."""


class DefaultsOfKind:
    """The defaults of the stored objects of one built-in resource; implements `StoredDefaults`.

    Args:
        definition: the resource.
    """

    may_change = False

    def __init__(self, definition: ResourceDefinition) -> None:
        self._definition = definition
        self._decoders: dict[str, Decoder | None] = {}

    @cached_property
    def exist(self) -> bool:
        definition = self._definition
        if definition.strategy.has_defaults:
            return True
        return any(_has_defaults(definition.schema(version), set()) for version in definition.versions)

    def complete(self, obj: Object) -> bool:
        api_version = str(obj["apiVersion"])
        if api_version not in self._decoders:
            self._decoders[api_version] = self._decoder(api_version)
        decoder = self._decoders[api_version]
        if decoder is None or obj["kind"] != self._definition.kind:
            return False
        paths = raw_paths(self._definition.group, self._definition.kind)
        has_texts = into_fields(obj, paths)  # decoding would drop the texts beside the fields
        try:
            decoder.shape(obj)
        except ShapeError as error:
            raise Mistyped(str(error)) from None
        if has_texts:
            obj.update(beside_fields(obj, paths))
        return True

    def _decoder(self, api_version: str) -> Decoder | None:
        """Return the decoder of a version in which objects may be stored; None if the resource does not have it."""
        definition = self._definition
        version = GroupVersion.parse(api_version).version
        gvk = definition.gvk(version)
        if version not in definition.versions or gvk.api_version != api_version:
            return None

        def default(obj: Object) -> None:
            definition.strategy.default_stored(obj, version)

        return Decoder(gvk, lambda: definition.schema(version), default)


def _has_defaults(node: SchemaNode, visited: set[int]) -> bool:
    """Return whether a schema or a schema below it has a default that is not the zero value of its type.

    Args:
        node: the schema, which may contain itself.
        visited: the identities of the schemas that were visited.
    """
    if id(node) in visited:
        return False
    visited.add(id(node))
    if node.default is not NO_DEFAULT and node.default not in _ZERO_VALUES:
        return True
    below = [*node.properties.values(), node.items, node.additional_properties]
    return any(_has_defaults(child, visited) for child in below if child is not None)
