"""Field and label selectors of a list, watch or deletecollection as authorization attributes (AuthorizeWithSelectors).

A selector that cannot be parsed gives no requirements: the request is judged as if it had none, as upstream does.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery import fields, labels
from tetrapod.machinery.requestinfo import RequestInfo

Requirements = tuple[dict[str, Any], ...]
_VERBS: Final = frozenset({"list", "watch", "deletecollection"})
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist", "=": "In", "==": "In", "!=": "NotIn"}


def requirements_of(info: RequestInfo) -> tuple[Requirements, Requirements]:
    """Of fields and of labels; none for other verbs than list, watch and deletecollection."""
    if info.verb not in _VERBS:
        return (), ()
    return field_requirements(info.field_selector), label_requirements(info.label_selector)


def field_requirements(text: str) -> Requirements:
    """A field selector's, in the wire form of FieldSelectorRequirement."""
    if not text:
        return ()
    try:
        selector = fields.parse(text)
    except ValueError:
        return ()
    return tuple(
        {"key": field, "operator": "NotIn" if op == "!=" else "In", "values": [value]} for field, op, value in selector.requirements
    )


def label_requirements(text: str) -> Requirements:
    """A label selector's, in the wire form of LabelSelectorRequirement; what that has no operator for is left out."""
    if not text:
        return ()
    try:
        selector = labels.parse(text)
    except ValueError:
        return ()
    return tuple(
        {"key": r.key, "operator": _OPERATORS[r.op], **({"values": sorted(r.values)} if r.values else {})}
        for r in selector.requirements
        if r.op in _OPERATORS
    )
