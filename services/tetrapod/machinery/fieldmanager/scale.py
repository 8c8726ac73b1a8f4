"""Ownership through `/scale`: the owner of a resource's replicas seen as the owner of the scale's, and back.

Called by the scale endpoint around an update of the Scale object. The entry that it adds to the resource has no time.
Follows k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.entries import Managed, decode, encode, new_entry
from tetrapod.machinery.gvk import Object

_SCALE_VERSION: Final = "autoscaling/v1"
_SCALE_PATH: Final = ("f:spec", "f:replicas")


class ScaleHandler:
    def __init__(self, parent_entries: Any, api_version: str, replicas_paths: Mapping[str, Sequence[str] | None]) -> None:
        """`replicas_paths`: the fields that lead to the replicas, by version of the resource; None where it has no scale.

        Raises:
            ValueError: the entries are not understood.
        """
        self._parent = decode(parent_entries)
        self._api_version = api_version
        self._paths = {v: None if path is None else tuple(f"f:{name}" for name in path) for v, path in replicas_paths.items()}

    def to_subresource(self) -> list[Object]:
        """The entries of the Scale object: who owns the replicas."""
        out: Managed = {}
        for manager, entry in self._parent.items():
            path = self._paths.get(entry.api_version)
            if path is not None and fieldset.has(entry.fields, path):
                fields = fieldset.of_paths([_SCALE_PATH])
                out[manager] = new_entry(manager, fields, _SCALE_VERSION, applied=entry.applied, time=entry.time)
        return encode(out)

    def to_parent(self, scale_entries: Any) -> list[Object]:
        """The entries of the resource after the Scale object was updated.

        Raises:
            ValueError: the entries are not understood.
        """
        scale = decode(scale_entries)
        out: Managed = {}
        for manager, entry in self._parent.items():
            if entry.api_version not in self._paths:
                continue
            path = self._paths[entry.api_version]
            if path is None or not fieldset.has(entry.fields, path):
                out[manager] = entry
            elif manager in scale:
                out[manager] = entry
                del scale[manager]
            elif rest := fieldset.difference(entry.fields, fieldset.of_paths([path])):
                out[manager] = entry.owning(rest)
        own = self._paths.get(self._api_version)
        for manager, entry in scale.items():
            if own is not None and fieldset.has(entry.fields, _SCALE_PATH):
                time = self._parent[manager].time if manager in self._parent else None
                out[manager] = new_entry(manager, fieldset.of_paths([own]), self._api_version, applied=entry.applied, time=time)
        return encode(out)
