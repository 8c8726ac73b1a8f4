"""Selectors from a set of labels, and from a LabelSelector object (`matchLabels`, `matchExpressions`).

Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.labels.selectors import EVERYTHING, NOTHING, Labels, Requirement, Selector, requirement


def from_set(labels: Labels | None) -> Selector:
    """Return a selector of objects that have all of `labels`, or of all objects if `labels` is empty or None.

    The labels are not validated.
    """
    return Selector(Requirement(key, "=", (value,)) for key, value in labels.items()) if labels else EVERYTHING


OPERATORS: Final[dict[str, str]] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
"""The operators of LabelSelector objects, and what they are in a `Requirement`."""


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """Return the selector of a LabelSelector object. None selects nothing, an empty one selects everything.

    Raises:
        ValueError: an operator is unknown, or a key or value is invalid.
    """
    if selector is None:
        return NOTHING
    match_labels: Labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    if not match_labels and not expressions:
        return EVERYTHING
    requirements = [requirement(key, "=", [value]) for key, value in match_labels.items()]
    for expression in expressions:
        op = OPERATORS.get(expression.get("operator", ""))
        if op is None:
            raise ValueError(f"{go_quote(expression.get('operator', ''))} is not a valid label selector operator")
        requirements.append(requirement(expression.get("key", ""), op, list(expression.get("values") or ())))
    return Selector(requirements)


def format_label_selector(selector: Mapping[str, Any] | None) -> str:
    """Return a LabelSelector object in text form, as tables show it.

    The result is `<none>` if the selector is empty or None, and `<error>` if it is invalid.
    """
    try:
        return str(from_label_selector(selector)) or "<none>"
    except ValueError:
        return "<error>"
