"""Mapping of managed fields between a resource and its Scale.

A manager that owns the replicas field of the resource owns `spec.replicas` of the Scale. The scale endpoint applies the
mapping around an update of the Scale object. Entries that the mapping adds to the resource have no time.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go.
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
    """The conversion of one object's managed fields to those of its Scale and back, for a request for `/scale`."""

    def __init__(
        self, parent_entries: Any, api_version: str, replicas_paths: Mapping[str, Sequence[str] | None]
    ) -> None:
        """Decode the managed fields of an object.

        Args:
            parent_entries: the managedFields of the object.
            api_version: the version of the resource to which new entries belong.
            replicas_paths: the path of the replicas field as field names, by version of the resource; None for a
                version without scale.

        Raises:
            ValueError: the entries are malformed.
        """
        self._parent = decode(parent_entries)
        self._api_version = api_version
        self._paths = {
            v: None if path is None else tuple(f"f:{name}" for name in path) for v, path in replicas_paths.items()
        }

    def to_subresource(self) -> list[Object]:
        """Return the managedFields of the Scale object: an entry for each manager that owns the replicas field."""
        out: Managed = {}
        for manager, entry in self._parent.items():
            path = self._paths.get(entry.api_version)
            if path is not None and fieldset.has(entry.fields, path):
                fields = fieldset.of_paths([_SCALE_PATH])
                out[manager] = new_entry(manager, fields, _SCALE_VERSION, applied=entry.applied, time=entry.time)
        return encode(out)

    def to_parent(self, scale_entries: Any) -> list[Object]:
        """Return the managedFields of the resource after an update of its Scale.

        Managers that own `spec.replicas` of the Scale own the replicas field of the resource, and no others do.

        Args:
            scale_entries: the managedFields of the Scale after the update.

        Raises:
            ValueError: the entries are malformed.
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
            elif remaining := fieldset.difference(entry.fields, fieldset.of_paths([path])):
                out[manager] = entry.owning(remaining)
        replicas_path = self._paths.get(self._api_version)
        for manager, entry in scale.items():
            if replicas_path is not None and fieldset.has(entry.fields, _SCALE_PATH):
                time = self._parent[manager].time if manager in self._parent else None
                out[manager] = new_entry(
                    manager, fieldset.of_paths([replicas_path]), self._api_version, applied=entry.applied, time=time
                )
        return encode(out)
