"""JSON merge patch (RFC 7386) as evanphx/json-patch applies it.

Called by the PATCH endpoint. Follows gopkg.in/evanphx/json-patch.v4/merge.go, whose one departure from the RFC is kept:
nulls inside a list of the patch are pruned, unless that list takes the place of an object.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.patch.goformat import json_kind
from tetrapod.machinery.status import bad_request


def parse(body: Any) -> Object:
    """Check the decoded body of a merge patch request.

    Raises:
        StatusError: 400, it is no object.
    """
    if body is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(body, dict):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {json_kind(body)} into Go value of type map[string]interface {{}}")
    return body


def apply(document: Object, patch: Any) -> Object:
    """The merged object; both given ones are left alone.

    Raises:
        StatusError: 400, the patch is no object.
    """
    return _merge_objects(document, parse(patch))


def _merge_objects(current: Object, patch: Object) -> Object:
    merged = dict(current)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
            continue
        old = merged.get(name)
        if isinstance(old, dict):
            merged[name] = _merge_objects(old, value) if isinstance(value, dict) else value
        else:
            merged[name] = prune_nulls(value)
    return merged


def prune_nulls(value: Any) -> Any:
    """A copy without the members that are null; null items of lists stay."""
    if isinstance(value, dict):
        return {k: prune_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [prune_nulls(v) for v in value]
    return value
