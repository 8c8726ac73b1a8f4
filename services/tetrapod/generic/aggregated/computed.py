"""For a `Rest` that computes its objects: what of them a request asks for, and lists of them."""

from __future__ import annotations

from collections.abc import Iterable

from tetrapod.generic.endpoints.options import ListOptions
from tetrapod.machinery import fields, labels
from tetrapod.machinery.gvk import Object


def list_of(api_version: str, kind: str, items: Iterable[Object], options: ListOptions) -> Object:
    """A list object of those that the selectors of a request mean; fields that can be selected are the name and the namespace."""
    wanted, where = labels.parse(options.label_selector), fields.parse(options.field_selector)
    chosen = [item for item in items if wanted.matches(item["metadata"].get("labels") or {}) and where.matches(_fields(item))]
    return {"apiVersion": api_version, "kind": f"{kind}List", "metadata": {}, "items": chosen}


def _fields(item: Object) -> dict[str, str]:
    metadata = item["metadata"]
    return {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
