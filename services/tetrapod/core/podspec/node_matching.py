"""Matching of nodes with node selectors.

Upstream: k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import OPERATORS, Requirement, requirement

_OPERATORS: Final = {**OPERATORS, "Gt": "gt", "Lt": "lt"}
_NAME: Final = "metadata.name"


class NodeMatcher:
    """A node selector that matches nodes. A node matches if it matches one of the terms; an empty term has no matches.

    Args:
        selector: the NodeSelector, which validation has accepted.

    Raises:
        ValueError: a requirement on labels is invalid by the rules of label selectors; with upstream's text.
    """

    def __init__(self, selector: Object) -> None:
        self._terms: list[tuple[list[Requirement], list[Requirement]]] = []
        errors: list[str] = []
        for i, term in enumerate(selector.get("nodeSelectorTerms") or ()):
            expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
            if not expressions and not fields:
                continue
            labels: list[Requirement] = []
            for j, given in enumerate(expressions):
                path = f"nodeSelectorTerms[{i}].matchExpressions[{j}]"
                operator = _OPERATORS[given.get("operator") or ""]
                try:
                    labels.append(requirement(given.get("key") or "", operator, given.get("values") or [], path))
                except ValueError as error:
                    errors.append(str(error))
            names = [Requirement(_NAME, "in" if one["operator"] == "In" else "notin", one["values"]) for one in fields]
            self._terms.append((labels, names))
        if errors:
            raise ValueError(aggregate_errors(errors))

    def matches(self, node: Object) -> bool:
        """Return whether a node matches by its labels and its name."""
        metadata = node["metadata"]
        labels, fields = metadata.get("labels") or {}, {_NAME: metadata["name"]}
        return any(
            all(one.matches(labels) for one in expressions) and all(one.matches(fields) for one in names)
            for expressions, names in self._terms
        )
