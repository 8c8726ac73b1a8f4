"""Warnings about deprecated node labels. Upstream: pkg/api/node/util.go."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_valid_label_value

_RENAMED: Final = {
    "failure-domain.beta.kubernetes.io/zone": ("deprecated since v1.17; ", "topology.kubernetes.io/zone"),
    "failure-domain.beta.kubernetes.io/region": ("deprecated since v1.17; ", "topology.kubernetes.io/region"),
    "beta.kubernetes.io/instance-type": ("deprecated since v1.17; ", "node.kubernetes.io/instance-type"),
    "beta.kubernetes.io/os": ("deprecated since v1.14; ", "kubernetes.io/os"),
    "beta.kubernetes.io/arch": ("deprecated since v1.14; ", "kubernetes.io/arch"),
    "node-role.kubernetes.io/master": ("", "node-role.kubernetes.io/control-plane"),
}


def deprecated_label(key: str) -> str:
    """Return the text 'deprecated since …; use "…" instead' for a deprecated node label, or ""."""
    replacement = _RENAMED.get(key)
    return f'{replacement[0]}use "{replacement[1]}" instead' if replacement else ""


def node_selector_term(term: Object, path: str, *, values: bool) -> list[str]:
    """Return warnings about deprecated node labels and invalid label values in a NodeSelectorTerm.

    Args:
        path: the field path of the term, for the warnings.
        values: whether to warn about invalid label values; required terms reject them instead.
    """
    out: list[str] = []
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        expression_path, key = f"{path}.matchExpressions[{i}]", expression.get("key") or ""
        if text := deprecated_label(key):
            out.append(f"{expression_path}.key: {key} is {text}")
        for j, value in enumerate(expression.get("values") or ()) if values else ():
            out += [
                f"{expression_path}.values[{j}]: {value} is invalid, {text}" for text in is_valid_label_value(value)
            ]
    return out
