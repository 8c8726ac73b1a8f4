"""`DefaultsOfVersions`: the defaults of a custom resource, for objects that another program stored.

Objects that were stored before the last change of the definition get theirs from `CurrentStorage` and
`ConvertedStorage`.
Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, schemaCoercingDecoder
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tetrapod.extensions.custom.version_codec import UnknownStoredVersion, VersionCodec
from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import defaulting


class DefaultsOfVersions:
    """The defaults of the stored objects of one custom resource; implements `StoredDefaults`.

    Args:
        group: the API group.
        versions: all versions by name.
        stored: the name of the storage version.
    """

    may_change = True

    def __init__(self, group: str, versions: Mapping[str, ServedVersion], stored: str) -> None:
        self._versions = versions
        self._codec = VersionCodec(group, versions, stored, stored)

    @cached_property
    def exist(self) -> bool:
        return any(defaulting.has_defaults(version.node) for version in self._versions.values())

    def complete(self, obj: Object) -> bool:
        try:
            self._codec.decode(obj)
        except UnknownStoredVersion:
            return False
        return True
