"""The controller that registers an APIService for every group-version that a CustomResourceDefinition serves.

Upstream: k8s.io/kubernetes/pkg/controlplane/controller/crdregistration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tetrapod.aggregator.autoregister import AutoRegistration
from tetrapod.aggregator.priorities import CUSTOM
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersion, GroupVersionResource, Object

CRDS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_PAGE: Final = 100


def declared_versions(crd: Object) -> set[GroupVersion]:
    """Return the group-versions of a CustomResourceDefinition, served or not."""
    spec = crd["spec"]
    return {GroupVersion(spec["group"], v["name"]) for v in spec.get("versions") or []}


def served_versions(crd: Object) -> set[GroupVersion]:
    """Return the group-versions that a CustomResourceDefinition serves."""
    spec = crd["spec"]
    return {GroupVersion(spec["group"], v["name"]) for v in spec.get("versions") or [] if v.get("served")}


class _Version(msgspec.Struct):
    name: str
    served: bool = False


class _Spec(msgspec.Struct):
    group: str
    versions: list[_Version] = []


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str


class _Definition(msgspec.Struct):
    """The fields of a CustomResourceDefinition that this controller decodes, without schemas, which can be large."""

    metadata: _Metadata
    spec: _Spec


class CRDRegistration:
    """The controller that passes the group-versions of CustomResourceDefinitions to the registration of APIServices.

    Attributes:
        informer: the informer of CustomResourceDefinitions; the owner runs it.

    Args:
        client: lists and watches CustomResourceDefinitions.
        registration: gets the group-versions.
    """

    def __init__(self, client: Client, registration: AutoRegistration) -> None:
        self.informer = Informer(client, CRDS, only=_Definition, page=_PAGE)
        self.informer.handlers.append(self.changed)
        self._registration = registration
        self._served: dict[str, set[GroupVersion]] = {}

    def changed(self, old: Object | None, new: Object | None) -> None:
        """Register the group-versions that the event added, and unregister those that are no longer served.

        A group-version that another CustomResourceDefinition still serves stays registered.

        Args:
            old: the object before the event; None if it was added.
            new: the object after the event; None if it was deleted.
        """
        obj = new or old
        if obj is None:
            return
        name = obj["metadata"]["name"]
        old_versions = self._served.get(name, set())
        new_versions = served_versions(new) if new is not None else set()
        if new_versions:
            self._served[name] = new_versions
        else:
            self._served.pop(name, None)
        for gv in new_versions - old_versions:
            self._registration.want(gv, CUSTOM, always=True)
        for gv in _without(old_versions - new_versions, self._served.values()):
            self._registration.no_longer(gv)


def _without(versions: Iterable[GroupVersion], served: Iterable[set[GroupVersion]]) -> list[GroupVersion]:
    """Return the group-versions of `versions` that no CustomResourceDefinition serves.

    Args:
        versions: group-versions.
        served: the group-versions that each CustomResourceDefinition serves.
    """
    others = set().union(*served)
    return [gv for gv in versions if gv not in others]
