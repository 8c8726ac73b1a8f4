"""Field paths of values as pairs (parent path, step). They are cheap to build and are formatted only for errors."""

from __future__ import annotations

from typing import Any, TypeAlias

from tetrapod.machinery.error_limits import cut_path

Path: TypeAlias = tuple[Any, ...]
"""Either () or (Path, key or index)."""


def text_of(path: Path) -> str:
    """Return a path as text, for example `spec.list[0].name`. As in kube-openapi, dots in keys are not escaped.

    The result has at most MAX_PATH characters.
    """
    steps: list[str | int] = []
    while path:
        path, step = path
        steps.append(step)
    text = ""
    for step in reversed(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text = f"{text}.{cut_path(step)}" if text else cut_path(step)
    return cut_path(text)
