"""Values of selectable fields, as field selectors compare them.

Upstream: apiextensions-apiserver/pkg/registry/customresource/strategy.go, selectableFields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tetrapod.machinery.gvk import Object


def selected_values(obj: Object, paths: Iterable[str]) -> dict[str, str]:
    """Return the values of the fields at the given paths as text, by path.

    Booleans become "true" and "false". The text is "" for a missing field and for a value other than a string, an
    integer or a boolean.
    """
    return {path: _text(_at(obj, path)) for path in paths}


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else ""
