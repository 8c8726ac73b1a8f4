"""JSON merge patch (RFC 7386) as evanphx/json-patch applies it. The PATCH endpoint calls it.

It has evanphx's one deviation from the RFC: nulls inside a list of the patch are removed, unless that list replaces an
object.

Upstream: gopkg.in/evanphx/json-patch.v4/merge.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.golang.formatting import json_kind
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request


def parse(body: Any) -> Object:
    """Validate the decoded body of a merge patch request and return it.

    Raises:
        StatusError: 400 if it is not an object.
    """
    if body is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(body, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(body)} into Go value of type "
            f"map[string]interface {{}}"
        )
    return body


def apply(document: Object, patch: Any) -> Object:
    """Return the merged object. The arguments are not modified, but the result shares parts of them.

    Raises:
        StatusError: 400 if the patch is not an object.
    """
    return _merge_objects(document, parse(patch))


def _merge_objects(current: Object, patch: Object) -> Object:
    merged = dict(current)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
            continue
        existing = merged.get(name)
        if isinstance(existing, dict):
            merged[name] = _merge_objects(existing, value) if isinstance(value, dict) else value
        else:
            merged[name] = prune_nulls(value)
    return merged


def prune_nulls(value: Any) -> Any:
    """Return a copy of a value without object members that are null, at any depth. Null items of lists are kept."""
    if isinstance(value, dict):
        return {k: prune_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [prune_nulls(v) for v in value]
    return value
