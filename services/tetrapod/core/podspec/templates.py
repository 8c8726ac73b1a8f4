"""Validation of pod templates, and of the core/v1 kinds that hold one: PodTemplate and ReplicationController.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodTemplateSpec and ValidateReplicationControllerSpec.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.annotations import match_fields, pod_annotations
from tetrapod.core.podspec.validation import pod_spec
from tetrapod.core.validation import shown
from tetrapod.core.validation.names import complaints, not_negative
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.metadata import validate_annotations
from tetrapod.machinery.names import is_long_name

_TOO_MANY: Final = "cannot be greater than status.replicas"


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


def validate(obj: Object) -> list[FieldError]:
    """Validate a PodTemplate."""
    return pod_template_spec(obj.get("template") or {}, "template")


def validate_controller(obj: Object) -> list[FieldError]:
    """Validate a ReplicationController."""
    spec = obj.get("spec") or {}
    errors = _controller_template(spec.get("selector") or {}, spec.get("template"))
    # Rules that upstream declares in the schema come after the hand-written ones.
    errors += not_negative(spec.get("replicas"), "spec.replicas") + not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    name = obj["metadata"].get("name")
    return errors + (complaints(is_long_name, name, "metadata.name") if name else [])


def _controller_template(selector: Object, template: Object | None) -> list[FieldError]:
    errors = [] if selector else [field.required("spec.selector")]
    if template is None:
        return [*errors, field.required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels")
    if any((labels or {}).get(key) != value for key, value in selector.items()):
        text = "`selector` does not match template `labels`"
        errors.append(field.invalid("spec.template.metadata.labels", shown.labels(labels), text))
    errors += pod_template_spec(template, "spec.template")
    pod_spec = template.get("spec") or {}
    if pod_spec.get("restartPolicy") != "Always":
        errors.append(field.not_supported("spec.template.spec.restartPolicy", pod_spec.get("restartPolicy") or "", ["Always"]))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        text = "activeDeadlineSeconds in ReplicationController is not Supported"
        errors.append(field.forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return errors


def validate_controller_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a ReplicationController."""
    status = new.get("status") or {}
    names = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
    number = {name: status.get(name) or 0 for name in names}
    errors = [error for name in names for error in not_negative(number[name], f"status.{name}")]
    errors += [field.invalid(f"status.{name}", number[name], _TOO_MANY) for name in names[1:4] if number[name] > number["replicas"]]
    if number["availableReplicas"] > number["readyReplicas"]:
        errors.append(field.invalid("status.availableReplicas", number["availableReplicas"], "cannot be greater than readyReplicas"))
    return errors
