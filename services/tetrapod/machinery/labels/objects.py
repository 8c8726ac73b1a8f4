"""Selectors of objects: of a set of labels, and of a LabelSelector (`matchLabels`, `matchExpressions`).

Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.machinery import field
from tetrapod.machinery.labels.selectors import EVERYTHING, NOTHING, Labels, Requirement, Selector, requirement


def from_set(labels: Labels | None) -> Selector:
    """A selector of exactly these labels, trusted to be valid."""
    return Selector(Requirement(key, "=", (value,)) for key, value in labels.items()) if labels else EVERYTHING


_OBJECT_OPERATORS: Final[dict[str, str]] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """The selector of a LabelSelector object: none selects nothing, an empty one everything.

    Raises:
        ValueError: an unknown operator or invalid keys or values.
    """
    if selector is None:
        return NOTHING
    match_labels: Labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    if not match_labels and not expressions:
        return EVERYTHING
    found = [requirement(key, "=", [value]) for key, value in match_labels.items()]
    for expression in expressions:
        op = _OBJECT_OPERATORS.get(expression.get("operator", ""))
        if op is None:
            raise ValueError(f"{field.go_quote(expression.get('operator', ''))} is not a valid label selector operator")
        found.append(requirement(expression.get("key", ""), op, list(expression.get("values") or ())))
    return Selector(found)


def format_label_selector(selector: Mapping[str, Any] | None) -> str:
    """As tables show it: `<none>` where nothing is restricted, `<error>` where it does not parse."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except ValueError:
        return "<error>"
