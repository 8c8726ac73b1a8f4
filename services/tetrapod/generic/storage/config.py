"""`StorageConfig`: where and how one resource is stored, with the defaults of its stored objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from tetrapod.machinery.gvk import GroupResource, Object


class Mistyped(Exception):
    """A stored object has a value of a wrong type; the text is that of upstream's decoder."""


class StoredDefaults(Protocol):
    """The defaults of the stored objects of one resource."""

    @property
    def exist(self) -> bool:
        """Whether the resource has defaults that stored objects may lack."""

    @property
    def may_change(self) -> bool:
        """Whether the defaults may change while objects are cached (those of custom resources)."""

    def complete(self, obj: Object) -> bool:
        """Set missing defaults in a stored object, in place. Return False if it is of another kind or version.

        Raises:
            Mistyped: a value has a wrong type.
        """


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """Where and how one resource is stored.

    Attributes:
        prefix: the keys are below `/registry/` and this, such as "pods", "services/specs" or "example.com/widgets".
        api_version: the apiVersion of objects in the cache, and of stored ones without `to_store`.
        kind: the kind of stored objects.
        namespaced: whether the namespace is part of the key.
        compressed: whether the cache keeps the objects compressed, because they are large and seldom read.
        cbor: whether objects are written as CBOR instead of JSON. Both are read.
        from_store: returns a stored JSON value in the version `api_version`, and the value itself if it has that
            version already; None if stored objects never have another version.
        to_store: returns the JSON of an object in the version in which it is stored; None if that is `api_version`.
            `from_store` must convert it back.
        defaults: sets the defaults that a stored object lacks; None if it has none.
    """

    prefix: str
    api_version: str
    kind: str
    namespaced: bool = True
    compressed: bool = False
    cbor: bool = False
    from_store: Callable[[bytes], bytes] | None = None
    to_store: Callable[[bytes], bytes] | None = None
    defaults: StoredDefaults | None = None

    @property
    def group_resource(self) -> GroupResource:
        """The resource's name as the EncryptionConfiguration and metrics use it.

        For a few resources it cannot be derived from the storage prefix (see `UNUSUAL_PLACES`).
        """
        named = UNUSUAL_PLACES.get(self.prefix)
        return named or GroupResource(self.api_version.rpartition("/")[0], self.prefix.rpartition("/")[2])

    @property
    def is_extension(self) -> bool:
        """Whether this is a custom resource, or the CustomResourceDefinitions or APIServices.

        Only their prefixes contain the group. As in kube-apiserver, flags about the storage of built-in resources do
        not apply to them.
        """
        resource = self.group_resource
        return self.prefix == f"{resource.group}/{resource.resource}"


UNUSUAL_PLACES: Final = {
    "services/specs": GroupResource("", "services"),
    "services/endpoints": GroupResource("", "endpoints"),
    "controllers": GroupResource("", "replicationcontrollers"),
    "minions": GroupResource("", "nodes"),
    "ranges": GroupResource("", "servicenodeportallocations"),
    "ingress": GroupResource("networking.k8s.io", "ingresses"),
    "events": GroupResource("", "events"),  # both API groups that serve events store them here
}
"""The resources by storage prefix, where this prefix and the apiVersion of stored objects do not give the name.

Upstream: pkg/kubeapiserver/default_storage_factory_builder.go, specialDefaultResourcePrefixes
"""
