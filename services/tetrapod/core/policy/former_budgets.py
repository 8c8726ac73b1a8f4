"""PodDisruptionBudgets that a kube-apiserver before v1.22 stored as policy/v1beta1, as policy/v1.

An empty selector selected no pods in v1beta1, and selects all in v1.
Upstream: pkg/apis/policy/v1beta1/conversion.go and pkg/apis/policy/helper.go
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.generic.storage.encoding import as_json, encode

_FORMER: Final = b"policy/v1beta1"
_HEAD_BYTES: Final = 128
"""The apiVersion is among the first bytes of a stored value, in JSON and in the envelope of protobuf."""
_LABEL: Final = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_MATCH_NONE: Final = {"matchExpressions": [{"key": _LABEL, "operator": "Exists"}]}
_MATCH_ALL_FORMERLY: Final = {"matchExpressions": [{"key": _LABEL, "operator": "DoesNotExist"}]}


def from_former(stored: bytes) -> bytes:
    """Return the stored value of a PodDisruptionBudget in policy/v1; one that is not of v1beta1 unchanged.

    Raises:
        ValueError, AttributeError, TypeError: the value cannot be decoded.
    """
    if _FORMER not in stored[:_HEAD_BYTES]:
        return stored
    budget = orjson.loads(as_json(stored))
    spec = budget.get("spec") or {}
    selector = spec.get("selector")
    if selector is not None:
        spec["selector"] = _selector(selector)
    return encode(budget, "policy/v1", "PodDisruptionBudget")


def _selector(selector: dict[str, Any]) -> dict[str, Any]:
    """Return a selector of v1beta1 as one of v1 that selects the same pods."""
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return _MATCH_NONE
    if selector == _MATCH_ALL_FORMERLY:
        return {}
    kept = [expression for expression in selector.get("matchExpressions") or () if expression.get("key") != _LABEL]
    others = {name: value for name, value in selector.items() if name != "matchExpressions"}
    return {**others, "matchExpressions": kept} if kept else others
