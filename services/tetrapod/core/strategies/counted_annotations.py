"""Annotations of apps/v1 that upstream's internal types hold as integer fields.

The conversion to the internal type parses them, so that a value that is not an integer is a decoding error.
Upstream: pkg/apis/apps/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.endpoints.decoding import ShapeError
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.golang.integers import parse_int
from tetrapod.machinery.gvk import Object

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"


def settle_template_generation(obj: Object) -> None:
    """Normalize the template generation annotation of a decoded DaemonSet; a missing one becomes "0".

    Raises:
        ShapeError: the value is not an integer.
    """
    annotations = obj["metadata"].get("annotations")
    if annotations is None:
        annotations = obj["metadata"]["annotations"] = {}
    annotations[TEMPLATE_GENERATION] = str(_parse(annotations.get(TEMPLATE_GENERATION, "0")))


def settle_rollback(obj: Object) -> None:
    """Normalize the rollback annotation of a decoded Deployment; an empty one is removed.

    Raises:
        ShapeError: the value is not an integer.
    """
    annotations = obj["metadata"].get("annotations") or {}
    if not (text := annotations.get(ROLLBACK_TO)):
        annotations.pop(ROLLBACK_TO, None)
        if not annotations:
            obj["metadata"].pop("annotations", None)
        return
    try:
        annotations[ROLLBACK_TO] = str(_parse(text))
    except ShapeError as error:
        raise ShapeError(f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}") from None


class AnnotatedStatus(StatusStrategy):
    """The status strategy of a kind with such an annotation: it belongs to the spec, so a status update does not change it."""

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


def _parse(text: str) -> int:
    """Parse like Go's strconv.ParseInt with 64 bits, raising ShapeError."""
    try:
        return parse_int(text)
    except ValueError as error:
        raise ShapeError(str(error)) from None
