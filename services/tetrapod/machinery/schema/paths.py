"""Paths of a walk as pairs (parent, step), cheap to make; written out only for an error."""

from __future__ import annotations

from typing import Any, TypeAlias

Path: TypeAlias = tuple[Any, ...]
"""() or (Path, key or index)."""


def text_of(path: Path) -> str:
    """`spec.list[0].name`; as kube-openapi writes it, without regard to dots in keys."""
    steps: list[str | int] = []
    while path:
        path, step = path
        steps.append(step)
    text = ""
    for step in reversed(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text = f"{text}.{step}" if text else step
    return text
