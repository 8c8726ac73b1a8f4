"""Wants an APIService for every group-version that some CustomResourceDefinition serves.

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


def served_versions(crd: Object) -> set[GroupVersion]:
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
    """Schemas can be large, and nothing here looks into them."""

    metadata: _Metadata
    spec: _Spec


class CRDRegistration:
    def __init__(self, client: Client, registration: AutoRegistration) -> None:
        self.informer = Informer(client, CRDS, only=_Definition, page=_PAGE)
        self.informer.handlers.append(self.changed)
        self._registration = registration
        self._served: dict[str, set[GroupVersion]] = {}

    def changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        name = obj["metadata"]["name"]
        before = self._served.get(name, set())
        after = served_versions(new) if new is not None else set()
        if after:
            self._served[name] = after
        else:
            self._served.pop(name, None)
        for gv in after - before:
            self._registration.want(gv, CUSTOM, always=True)
        for gv in _without(before - after, self._served.values()):
            self._registration.no_longer(gv)


def _without(versions: Iterable[GroupVersion], served: Iterable[set[GroupVersion]]) -> list[GroupVersion]:
    """Those that nobody else serves."""
    others = set().union(*served)
    return [gv for gv in versions if gv not in others]
