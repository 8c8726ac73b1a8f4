"""Between the versions of a custom resource, as they are stored and as requests have them.

What was stored is pruned and defaulted by the version in which it was, converted, and pruned by the other one; what is written is
converted and pruned by the version that is stored. With strategy None to convert is to rename; webhooks are in extensions/conversion.
Upstream: apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go, and the codec that crdConversionRESTOptionsGetter of
customresource_handler.go makes for each version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema import custom, defaulting, pruning
from tetrapod.machinery.serializer.numbers import integral


class LostVersion(Exception):
    """An object says that it is of a version that its definition has not."""


class Forms:
    """Of one custom resource, as the requests of one version see it. `version` and `stored` are names of `versions`."""

    def __init__(self, group: str, versions: Mapping[str, ServedVersion], version: str, stored: str) -> None:
        self._versions = versions
        self._wanted, self._stored = versions[version], versions[stored]
        self._api_version, self._stored_as = str(GroupVersion(group, version)), str(GroupVersion(group, stored))

    @property
    def differ(self) -> bool:
        """Whether what is stored is of another version than the requests."""
        return self._wanted is not self._stored

    @cached_property
    def whole(self) -> bool:
        """Whether what is stored has the defaults of its version: what was written in other versions has theirs."""
        same = all(version.schema == self._stored.schema for version in self._versions.values())
        return same or not defaulting.has_defaults(self._stored.node)

    def decode(self, obj: Object) -> None:
        """Bring what was stored to what the version in which it was says today, in place.

        Raises:
            LostVersion
        """
        given = obj.get("apiVersion") or self._stored_as
        written = self._versions.get(GroupVersion.parse(given).version)
        if written is None:
            raise LostVersion(f"request to convert CR from an invalid group/version: {given}")
        pruning.prune(written.node, obj)
        defaulting.apply(written.node, obj)
        defaulting.drop_nulls(written.node, obj)

    def settle(self, obj: Object) -> None:
        """Bring what was converted for a request to what its version says, in place."""
        integral(obj)
        custom.coerce(self._wanted.node, obj)

    def settle_stored(self, obj: Object) -> None:
        """The same for what is to be stored."""
        integral(obj)
        custom.coerce(self._stored.node, obj)

    def read(self, obj: Object) -> None:
        """All of it with strategy None: what was stored, for the requests, in place.

        Raises:
            LostVersion
        """
        self.decode(obj)
        if obj.get("apiVersion") != self._api_version:
            obj["apiVersion"] = self._api_version
            custom.coerce(self._wanted.node, obj)

    def written(self, obj: Object) -> Object:
        """What is stored of an object with strategy None."""
        if not self.differ:
            return obj
        copy = copy_object(obj)
        copy["apiVersion"] = self._stored_as
        custom.coerce(self._stored.node, copy)
        return copy
