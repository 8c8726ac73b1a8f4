"""Helpers for a `Rest` that computes its objects."""

from __future__ import annotations

from collections.abc import Iterable

from tetrapod.generic.endpoints.options import ListOptions
from tetrapod.machinery import fields, labels
from tetrapod.machinery.gvk import Object


def list_of(api_version: str, kind: str, items: Iterable[Object], options: ListOptions) -> Object:
    """Return a list object of the items that match the selectors of the request. Only name and namespace are
    selectable fields.
    """
    label_selector, field_selector = labels.parse(options.label_selector), fields.parse(options.field_selector)
    chosen = [
        item for item in items if label_selector.matches(item["metadata"].get("labels") or {}) and field_selector.matches(_fields(item))
    ]
    return {"apiVersion": api_version, "kind": f"{kind}List", "metadata": {}, "items": chosen}


def _fields(item: Object) -> dict[str, str]:
    metadata = item["metadata"]
    return {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
