"""Helpers for a `Rest` (the handler of a resource without a store) that computes its objects."""

from __future__ import annotations

from collections.abc import Iterable

from tetrapod.generic.endpoints.options import ListOptions
from tetrapod.machinery import field_selectors, labels
from tetrapod.machinery.gvk import Object


def list_of(api_version: str, kind: str, items: Iterable[Object], options: ListOptions) -> Object:
    """Return a list object of those items that match the selectors of the request, in the given order.

    Args:
        api_version: the `group/version` of the items.
        kind: the kind of the items; that of the list has the suffix `List`.
        items: all objects, each with `metadata.name`.
        options: the options of the request. Only the label selector and the field selector are used; selectable fields
            are metadata.name and metadata.namespace.

    Raises:
        ValueError: a selector is malformed.
    """
    label_selector, field_selector = labels.parse(options.label_selector), field_selectors.parse(options.field_selector)
    matching = [
        item
        for item in items
        if label_selector.matches(item["metadata"].get("labels") or {}) and field_selector.matches(_fields(item))
    ]
    return {"apiVersion": api_version, "kind": f"{kind}List", "metadata": {}, "items": matching}


def _fields(item: Object) -> dict[str, str]:
    metadata = item["metadata"]
    return {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
