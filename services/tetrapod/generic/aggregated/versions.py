"""`Version`: a further version of a kind, and the conversion between it and the storage version."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import orjson

from tetrapod.generic.aggregated.schemas import structural_schema
from tetrapod.generic.endpoints.conversion import type_prefix
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import GroupKind, GroupVersion, Object
from tetrapod.machinery.schema import defaulting
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema.validation import validate
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer.json import encode
from tetrapod.machinery.status import internal_error, invalid

log = logging.getLogger(__name__)

_TYPE_META: Final = ("kind", "apiVersion")

Convert = Callable[[Object], Object]


class CompiledSchema:
    """The forms of a `schema`, which subclasses have as a field. Each is made when it is first used."""

    schema: Any

    @cached_property
    def structure(self) -> dict[str, Any]:
        """The structural schema of the whole object as a dictionary, as OpenAPI shows it."""
        return structural_schema(self.schema)

    @cached_property
    def node(self) -> SchemaNode:
        """The compiled schema, which decodes, defaults, prunes and validates objects."""
        return build(self.structure)


@dataclass(frozen=True)
class Version(CompiledSchema):
    """A further version of a kind, besides the one that its `api_version` names and in which objects are stored.

    The conversions get a copy, which they may modify, and need not set `apiVersion`. Converting an object back must
    restore it: clients that read and update in this version otherwise delete the fields that it lacks. Keep such fields
    in an annotation. Server-side apply also converts objects from which it has removed fields, so a conversion should
    not rely on any field.

    Attributes:
        name: the name of the version, such as "v1".
        schema: the schema of the whole object in this version, as a JSON schema or a pydantic model.
        to_storage: converts an object from this version to the storage version.
        from_storage: converts an object from the storage version to this version.
        deprecated: the text of the Warning header of each request in this version; "" for none.

    Raises:
        ValueError: when the schema is first used, if it cannot be converted to a structural schema.
    """

    name: str
    schema: Any
    to_storage: Convert
    from_storage: Convert
    deprecated: str = ""

    @property
    def has_status(self) -> bool:
        """Whether the schema has a property `status`."""
        return "status" in self.structure["properties"]


class Converter:
    """The conversion of the objects of a kind between its versions, by way of the storage version."""

    def __init__(
        self, group_kind: GroupKind, storage_version: str, node: SchemaNode, versions: Sequence[Version]
    ) -> None:
        """Create the converter.

        Args:
            group_kind: the group and the kind.
            storage_version: the name of the version in which objects are stored.
            node: the schema of the storage version.
            versions: all other versions.
        """
        self._group_kind = group_kind
        self._stored = str(GroupVersion(group_kind.group, storage_version))
        self._prefix = type_prefix(group_kind.kind, self._stored)
        self._node = node
        self._versions: Mapping[str, Version] = {v.name: v for v in versions}

    def convert(self, obj: Object, version: str) -> Object:
        """Return a copy of an object in another version, with the defaults of that version.

        Raises:
            StatusError: a conversion raised an exception: 422 if the object is invalid by its own schema, else 500.
        """
        group_version = GroupVersion(self._group_kind.group, version)
        if obj.get("apiVersion") == str(group_version):
            return dict(obj)
        stored = self._to_storage(obj)
        target = self._versions.get(version)
        if target is None:
            return stored
        return self._call(target.from_storage, stored, str(group_version), target.node, self._node)

    def _to_storage(self, obj: Object) -> Object:
        api_version = obj.get("apiVersion", "")
        source = self._versions.get(api_version.rpartition("/")[2])
        if source is None:
            return copy_object(obj)
        return self._call(source.to_storage, copy_object(obj), self._stored, self._node, source.node)

    def _call(self, convert: Convert, obj: Object, api_version: str, node: SchemaNode, source: SchemaNode) -> Object:
        """Return the result of a conversion, with the defaults of `node`.

        Args:
            convert: the conversion.
            obj: the object, which may be modified.
            api_version: the apiVersion of the result.
            node: the schema of the result.
            source: the schema of the object.
        """
        given = copy_object(obj)
        try:
            converted = convert(obj)
        except Exception as error:
            if errors := validate(source, given):
                raise invalid(self._group_kind, given["metadata"].get("name", ""), errors) from None
            log.exception("conversion of %s to %s failed", self._group_kind.kind, api_version)
            raise internal_error(
                f"conversion of {self._group_kind.kind} to {api_version} failed: {type(error).__name__}: {error}"
            ) from None
        ordered = {"kind": self._group_kind.kind, "apiVersion": api_version}
        converted = {**ordered, **{key: value for key, value in converted.items() if key not in _TYPE_META}}
        defaulting.apply(node, converted)
        return converted

    def from_former(self, stored: bytes) -> bytes:
        """Return a stored value in the storage version, because another version was the storage version before.

        Raises:
            StatusError: the value cannot be converted.
        """
        if stored.startswith(self._prefix):
            return stored
        return encode(self._to_storage(orjson.loads(stored)))
