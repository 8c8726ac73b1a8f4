"""Transformations of custom resources between their stored form and the version of a request.

A stored object is pruned and gets defaults by the version in which it was stored. It is then converted, and pruned by
the requested version. An object to be written is converted and pruned by the storage version. With the conversion
strategy None, conversion only sets apiVersion; webhooks are in extensions/conversion.

Upstream: apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go; customresource_handler.go,
crdConversionRESTOptionsGetter, for the codec of each version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.golang.json_numbers import integral
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema import custom_resources, defaulting


class UnknownStoredVersion(Exception):
    """The error that a stored object has no version, or one that its definition lacks; the text is upstream's."""


class VersionCodec:
    """The transformations of one custom resource for requests of one version.

    Args:
        versions: all versions by name.
        version: the name of the version of the requests.
        stored: the name of the storage version.
        group: the API group.
    """

    def __init__(self, group: str, versions: Mapping[str, ServedVersion], version: str, stored: str) -> None:
        self._versions = versions
        self._wanted, self._stored = versions[version], versions[stored]
        self._api_version, self._stored_as = str(GroupVersion(group, version)), str(GroupVersion(group, stored))

    @property
    def versions_differ(self) -> bool:
        """Whether the storage version is not the version of the requests."""
        return self._wanted is not self._stored

    @cached_property
    def defaulted(self) -> bool:
        """Whether every object that is written now gets all defaults of the storage version.

        This is true if all versions have the same schema, or if the storage version has no defaults. Otherwise an
        object that is written in another version gets only the defaults of that version.
        """
        same = all(version.schema == self._stored.schema for version in self._versions.values())
        return same or not defaulting.has_defaults(self._stored.node)

    def decode(self, obj: Object) -> None:
        """Prune a stored object, repair its metadata and set its defaults, in place, by its stored version's schema.

        Raises:
            UnknownStoredVersion: the definition no longer has that version, or the apiVersion is malformed.
        """
        api_version = obj.get("apiVersion") or self._stored_as
        try:
            name = GroupVersion.parse(str(api_version)).version
        except ValueError as error:
            raise UnknownStoredVersion(str(error)) from None
        written = self._versions.get(name)
        if written is None:
            raise UnknownStoredVersion(f"request to convert CR from an invalid group/version: {api_version}")
        custom_resources.decode_stored(written.node, obj)

    def prune_for_request(self, obj: Object) -> None:
        """Prune an object that was converted for a request, in place, by the version of the request.

        Raises:
            DecodeError: the metadata is malformed.
            CoerceError: the metadata of an embedded resource is malformed.
        """
        integral(obj)
        custom_resources.coerce(self._wanted.node, obj)

    def prune_for_storage(self, obj: Object) -> None:
        """Prune an object that was converted for storage, in place, by the storage version.

        Raises:
            DecodeError: the metadata is malformed.
            CoerceError: the metadata of an embedded resource is malformed.
        """
        integral(obj)
        custom_resources.coerce(self._stored.node, obj)

    def decode_for_request(self, obj: Object) -> None:
        """Transform a stored object to the version of the requests, in place, with the conversion strategy None.

        Raises:
            UnknownStoredVersion: the definition no longer has the version in which the object was stored, or its
                apiVersion is malformed.
            DecodeError: the metadata is malformed.
            CoerceError: the metadata of an embedded resource that only the version of the requests declares is
                malformed.
        """
        self.decode(obj)
        if obj.get("apiVersion") != self._api_version:
            obj["apiVersion"] = self._api_version
            custom_resources.coerce(self._wanted.node, obj)

    def encode(self, obj: Object) -> Object:
        """Return the object to store, with the conversion strategy None: itself, or a copy in the storage version.

        Raises:
            DecodeError: the metadata is malformed.
            CoerceError: the metadata of an embedded resource is malformed.
        """
        if not self.versions_differ:
            return obj
        copy = copy_object(obj)
        copy["apiVersion"] = self._stored_as
        custom_resources.coerce(self._stored.node, copy)
        return copy
