"""The parts of an object that the field manager reads and writes: metadata, managed fields and kind.

Objects of requests may have any values there.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.fieldmanager.typed import OBJECT_META
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema.decode import first_error
from tetrapod.machinery.types import load


def metadata(obj: Object | None) -> Object:
    """Return the metadata of an object; {} if it has none, or is None."""
    value = obj.get("metadata") if obj is not None else None
    return value if isinstance(value, dict) else {}


def without_managed_fields(obj: Object) -> Object:
    """Return the object without its managed fields. Only what changes is copied."""
    if "managedFields" not in metadata(obj):
        return obj
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


def with_managed_fields(obj: Object, entries: Any) -> Object:
    """Return the object with encoded managed fields; without any if `entries` is empty.

    Only what changes is copied.
    """
    if not entries:
        return obj if "managedFields" not in metadata(obj) else without_managed_fields(obj)
    return {**obj, "metadata": {**metadata(obj), "managedFields": entries}}


def are_managed_fields(value: Any) -> bool:
    """Return whether a value is a list of managed fields that match their schema.

    Other values count as unset here, and validation against the schema rejects them.
    """
    entry = load(OBJECT_META).properties["managedFields"].items
    assert entry is not None
    return isinstance(value, list) and all(
        isinstance(item, dict) and first_error(entry, copy_object(item)) is None for item in value
    )


def kind_of(obj: Object) -> GroupVersionKind:
    """Return the kind that an object states, whose parts are empty where it states none."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    kind = kind if isinstance(kind, str) else ""
    try:
        return GroupVersion.parse(api_version if isinstance(api_version, str) else "").with_kind(kind)
    except ValueError:  # as upstream's Unstructured.GroupVersionKind
        return GroupVersionKind("", "", "")


def describe(obj: Object) -> str:
    """Return an object's namespace, name and kind as Go writes them in messages."""
    namespace, name = (
        value if isinstance(value, str) else "" for value in map(metadata(obj).get, ("namespace", "name"))
    )
    return f"{namespace}/{name}; {kind_of(obj)}"
