"""One version of a custom resource, as its definition specifies it.

Schema nodes and validators are compiled on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tetrapod.extensions.custom.validation import CustomValidator
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema_node import SchemaNode


class ServedVersion:
    """One version of a custom resource, served or not, with its schema and printer columns.

    Args:
        declared: the entry of spec.versions.
        preserve_unknown: spec.preserveUnknownFields of the definition, which prevents pruning.
    """

    def __init__(self, declared: Object, *, preserve_unknown: bool) -> None:
        self.name: str = declared["name"]
        self.served: bool = declared["served"]
        self.storage: bool = declared["storage"]
        self.deprecated: bool = declared.get("deprecated") or False
        self.deprecation_warning: str | None = declared.get("deprecationWarning")
        self.schema: Object = (declared.get("schema") or {}).get("openAPIV3Schema") or {}
        self.columns: Sequence[Object] = declared.get("additionalPrinterColumns") or ()
        self.selectable: Sequence[str] = [
            f["jsonPath"].removeprefix(".") for f in declared.get("selectableFields") or ()
        ]
        subresources = declared.get("subresources") or {}
        self.has_status: bool = subresources.get("status") is not None
        self.scale: Object | None = subresources.get("scale")
        self._preserve_unknown = preserve_unknown

    @cached_property
    def node(self) -> SchemaNode:
        """The root of the compiled schema. Without a schema, all fields are preserved."""
        schema = self.schema
        if self._preserve_unknown or not schema:
            schema = {**schema, "x-kubernetes-preserve-unknown-fields": True}
        return build(schema)

    @cached_property
    def validator(self) -> CustomValidator:
        """The validator of objects in this version."""
        return CustomValidator(self.node, self.scale)
