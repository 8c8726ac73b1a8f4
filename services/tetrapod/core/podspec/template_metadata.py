"""Validation of the metadata in claim templates, which may only set labels and annotations.

Upstream: pkg/apis/core/validation/validation.go, ValidateTemplateObjectMeta.
"""

from __future__ import annotations

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.metadata import FIELD_ORDER, validate_annotations

_PASSED_ON = frozenset({"annotations", "labels"})


def template_metadata(meta: Object, path: str) -> list[FieldError]:
    """Validate the labels and annotations of a template, and reject all other metadata."""
    errors = validate_annotations(meta.get("annotations"), f"{path}.annotations") + validate_labels(meta.get("labels"), f"{path}.labels")
    return errors + [
        # Upstream prints the Go field name with a lower-case first letter, hence "uID".
        field.forbidden(f"{path}.{'uID' if key == 'uid' else key}", "cannot be set")
        for key in FIELD_ORDER
        if meta.get(key) and key not in _PASSED_ON
    ]
