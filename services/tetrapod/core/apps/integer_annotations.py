"""Annotations that hold an integer field of an older version, which upstream's internal types still have.

Upstream parses them when it decodes an object, so a value that is not an integer is a decoding error.

Upstream: pkg/apis/apps/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.generic.endpoints.decoding import ShapeError
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.golang.integers import parse_int
from tetrapod.machinery.gvk import Object


class AnnotatedStatus(StatusStrategy):
    """The status strategy of a kind in which an annotation holds a field that the spec of an older version had.

    As the spec, this annotation is not changed by a status update; the stored one is kept.

    Args:
        main: the strategy of the kind itself.
        annotation: the key of the annotation.
    """

    def __init__(self, main: Strategy, annotation: str, **options: Any) -> None:
        super().__init__(main, **options)
        self._annotation = annotation

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        existing = (old["metadata"].get("annotations") or {}).get(self._annotation)
        annotations = {k: v for k, v in (new["metadata"].get("annotations") or {}).items() if k != self._annotation}
        if existing is not None:
            annotations[self._annotation] = existing
        new["metadata"].pop("annotations", None)
        if annotations:
            new["metadata"]["annotations"] = annotations


def parse_integer(text: str) -> int:
    """Parse a 64-bit integer as Go's strconv.ParseInt does, raising ShapeError with Go's text."""
    try:
        return parse_int(text)
    except ValueError as error:
        raise ShapeError(str(error)) from None
