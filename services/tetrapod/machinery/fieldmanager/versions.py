"""The versions of a kind: the type of each, and the conversion of objects between them."""

from __future__ import annotations

from collections.abc import Callable

from tetrapod.machinery.fieldmanager.empty_objects import empty_object
from tetrapod.machinery.fieldmanager.typed import OBJECT_META, Type, compile_root
from tetrapod.machinery.fieldmanager.updater import MissingVersionError
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError, bad_request
from tetrapod.machinery.types import load


class KindVersions:
    """The versions of a kind.

    Args:
        node_for: returns the schema of the kind in an `apiVersion`; None or LookupError if that version does not exist.
        convert: converts an object of the kind to another `apiVersion`, raising LookupError if that version does not
            exist. It must not modify its argument. None if the kind has one version.
        custom: whether the kind is a custom resource. An unknown version is then an error of the request.
    """

    def __init__(
        self,
        node_for: Callable[[str], SchemaNode | None],
        convert: Callable[[Object, str], Object] | None,
        *,
        custom: bool,
    ) -> None:
        self._node_for = node_for
        self._convert_to = convert
        self._custom = custom
        self._types: dict[str, Type] = {}

    def type_for(self, version: str) -> Type:
        """Return the type of the kind in an `apiVersion`.

        Raises:
            MissingVersionError, StatusError: the version does not exist (see `_unknown`).
        """
        compiled = self._types.get(version)
        if compiled is None:
            compiled = self._types[version] = compile_root(self._node(version), load(OBJECT_META))
        return compiled

    def _node(self, version: str) -> SchemaNode:
        try:
            node = self._node_for(version)
        except LookupError:
            node = None
        if node is None:
            raise self._unknown(version)
        return node

    def convert(self, obj: Object, version: str) -> Object:
        """Return an object of the kind in an `apiVersion`. It is the argument if that has this version already.

        Raises:
            MissingVersionError, StatusError: the version does not exist (see `_unknown`).
        """
        if obj.get("apiVersion") == version or self._convert_to is None:
            return obj
        if not self._custom and obj.get("metadata") is None:
            obj = {**obj, "metadata": {}}  # a Go struct has metadata, even after an apply has removed all its fields
        try:
            return self._convert_to(obj, version)
        except LookupError as error:
            raise self._unknown(version) from error

    def _unknown(self, version: str) -> StatusError | MissingVersionError:
        """Return, without raising it, the error for a version that does not exist.

        It is a `StatusError` for custom resources, because upstream's conversion of the object to that version fails.
        For other kinds it is a `MissingVersionError`, because upstream drops the managers of such a version.
        """
        if self._custom:
            return bad_request(f"request to convert CR to an invalid group/version: {version}")
        return MissingVersionError(version)

    def empty(self, kind: GroupVersionKind) -> Object:
        """Return the empty object of the kind in the version of `kind`, which must not be modified."""
        return empty_object(kind, self._node(kind.api_version))
