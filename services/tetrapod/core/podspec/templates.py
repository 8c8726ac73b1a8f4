"""Validation of pod templates. Upstream: pkg/apis/core/validation/validation.go, ValidatePodTemplateSpec."""

from __future__ import annotations

from tetrapod.core.podspec.annotations import match_fields, pod_annotations
from tetrapod.core.podspec.validation import pod_spec
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.metadata import validate_annotations


def pod_template_spec(template: Object, path: str) -> list[FieldError]:
    """Validate the pod template of any kind; also called for the kinds of apps and batch."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = validate_labels(meta.get("labels"), f"{path}.labels")
    errors += validate_annotations(meta.get("annotations"), f"{path}.annotations")
    errors += pod_annotations(meta, spec, f"{path}.annotations")
    errors += pod_spec(spec, f"{path}.spec", pod=False)
    errors += match_fields(meta, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        errors.append(field.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return errors
