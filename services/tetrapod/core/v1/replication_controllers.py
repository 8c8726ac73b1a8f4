"""The definition of ReplicationControllers and their status, with defaults, validation, warnings and table columns.

Upstream: pkg/apis/core/validation/validation.go, ValidateReplicationControllerSpec;
pkg/registry/core/replicationcontroller/strategy.go; pkg/printers/internalversion/printers.go,
printReplicationController.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import labels_text, replicas_table
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.defaults import default_pod_template, set_missing
from tetrapod.core.podspec.warnings import name_warnings, same_generation, template_warnings
from tetrapod.core.podspec.workloads import pod_template_spec, scale
from tetrapod.core.validation.names import errors_from, not_negative
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery import field, go_structs
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_long_name

_TOO_MANY: Final = "cannot be greater than status.replicas"


_FORM: Final = HandWritten("spec.minReadySeconds", "spec.selector", "spec.replicas", "spec.template")


def definition() -> ResourceDefinition:
    """Return the resource definition of replicationcontrollers: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        hand_written=_FORM,
        defaults=set_defaults,
        has_status=True,
        initial_status={"replicas": 0},
        generation=("spec",),
        validator=validate,
        pod_template=("spec", "template"),
        warnings=warnings,
        name_validator=lambda name, prefix: [],  # validation checks the name
        fields={"status.replicas": lambda o: str((o.get("status") or {}).get("replicas", 0))},
    )
    strategy.garbage_collection_default = "Orphan"
    return builtin(
        "",
        "replicationcontrollers",
        strategy,
        storage_prefix="controllers",
        table=TABLE,
        subresources={"scale": scale(), "status": StatusStrategy(strategy, validate=validate_status)},
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec and the name of a ReplicationController.

    The selector is not empty and matches the labels of the pod template, which is valid and restarts pods always.
    replicas and minReadySeconds are not negative.
    """
    spec = obj.get("spec") or {}
    errors = _controller_template(spec.get("selector") or {}, spec.get("template"))
    # Rules that upstream declares in the schema come after the hand-written ones.
    name = obj["metadata"].get("name")
    errors += errors_from(is_long_name, name, "metadata.name") if name else []
    return (
        errors
        + not_negative(spec.get("replicas"), "spec.replicas")
        + not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    )


def _controller_template(selector: Object, template: Object | None) -> list[FieldError]:
    errors = [] if selector else [field.required("spec.selector")]
    if template is None:
        return [*errors, field.required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels")
    if any((labels or {}).get(key) != value for key, value in selector.items()):
        text = "`selector` does not match template `labels`"
        errors.append(field.invalid("spec.template.metadata.labels", go_structs.labels(labels), text))
    errors += pod_template_spec(template, "spec.template")
    pod_spec = template.get("spec") or {}
    if pod_spec.get("restartPolicy") != "Always":
        errors.append(
            field.not_supported("spec.template.spec.restartPolicy", pod_spec.get("restartPolicy") or "", ["Always"])
        )
    if pod_spec.get("activeDeadlineSeconds") is not None:
        text = "activeDeadlineSeconds in ReplicationController is not Supported"
        errors.append(field.forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status: counters are not negative.

    fullyLabeledReplicas, readyReplicas and availableReplicas may not exceed `replicas`, nor availableReplicas
    readyReplicas.
    """
    status = new.get("status") or {}
    names = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
    number = {name: status.get(name) or 0 for name in names}
    errors = [error for name in names for error in not_negative(number[name], f"status.{name}")]
    errors += [
        field.invalid(f"status.{name}", number[name], _TOO_MANY)
        for name in names[1:4]
        if number[name] > number["replicas"]
    ]
    if number["availableReplicas"] > number["readyReplicas"]:
        errors.append(
            field.invalid(
                "status.availableReplicas", number["availableReplicas"], "cannot be greater than readyReplicas"
            )
        )
    return errors


def set_defaults(obj: Object) -> None:
    """Set the defaults of a ReplicationController in place.

    The selector and the labels default to the labels of the pod template, and replicas to 1.
    """
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
    set_missing(spec, replicas=1)


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about the name and the pod template; none if an update does not change the generation.

    As upstream, an update warns about the stored template instead of the new one.

    Args:
        old: the stored object; None on create.
    """
    if same_generation(obj, old):
        return []
    return name_warnings(obj, old) + template_warnings(
        ((old or obj).get("spec") or {}).get("template"), "spec.template"
    )


TABLE: Final = replicas_table(labels_text)
