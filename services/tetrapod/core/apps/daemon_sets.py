"""The definition of DaemonSets, with their strategy, defaults, validation, warnings and table columns.

Upstream: pkg/registry/apps/daemonset/strategy.go and pkg/apis/apps/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core import cells
from tetrapod.core.apps import integer_annotations
from tetrapod.core.apps.integer_annotations import AnnotatedStatus
from tetrapod.core.cells import (
    AGE,
    NAME,
    NONE,
    age,
    containers,
    name_of,
    pod_template,
    selector_text,
    spec_of,
    status_of,
)
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec import workloads
from tetrapod.core.podspec.defaults import default_pod_template, set_missing
from tetrapod.core.podspec.warnings import template_warnings
from tetrapod.core.podspec.workloads import (
    pod_template_spec,
    validate_collision_count,
    validate_counters,
    validate_restart_policy,
    validate_selector_update,
    validate_template_labels,
)
from tetrapod.core.validation import rolling
from tetrapod.core.validation.names import not_negative
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.table import Column, TableConvertor

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"

INITIAL_STATUS: Final[Object] = {
    "currentNumberScheduled": 0,
    "desiredNumberScheduled": 0,
    "numberMisscheduled": 0,
    "numberReady": 0,
}


class DaemonSetStrategy(KindStrategy):
    """The strategy of DaemonSet.

    The annotation deprecated.daemonset.template.generation holds templateGeneration, a field of older versions. Clients
    cannot change it on update; the server increments it when the pod template changes.
    """

    def default(self, obj: Object, version: str) -> None:
        super().default(obj, version)
        normalize_template_generation(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[TEMPLATE_GENERATION] = str(max(1, int(annotations.get(TEMPLATE_GENERATION, "1"))))

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        template_generation = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or "0"
        if not same((new.get("spec") or {}).get("template"), (old.get("spec") or {}).get("template")):
            template_generation = str(int(template_generation) + 1)
        new["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = template_generation


def definition() -> ResourceDefinition:
    """Return the resource definition of DaemonSets: versions, strategy, subresources and columns."""
    strategy = DaemonSetStrategy(
        defaults=set_defaults,
        validator=validate,
        warnings=warnings,
        whole_update_validator=validate_update,
        has_status=True,
        initial_status=INITIAL_STATUS,
        pod_template=("spec", "template"),
        generation=("spec",),
    )
    status = AnnotatedStatus(strategy, TEMPLATE_GENERATION, validate=validate_status)
    definition = builtin("apps", "daemonsets", strategy, table=TABLE, subresources={"status": status})
    empty = {"metadata": {"annotations": {TEMPLATE_GENERATION: "0"}}}
    return replace(definition, hidden_annotations=frozenset({TEMPLATE_GENERATION}), empty=empty)


def normalize_template_generation(obj: Object) -> None:
    """Rewrite the template generation annotation in decimal form, in place; a missing one becomes "0".

    Raises:
        ShapeError: the value is not an integer.
    """
    annotations = obj["metadata"].get("annotations")
    if annotations is None:
        annotations = obj["metadata"]["annotations"] = {}
    annotations[TEMPLATE_GENERATION] = str(integer_annotations.parse_integer(annotations.get(TEMPLATE_GENERATION, "0")))


def set_defaults(obj: Object) -> None:
    """Set the defaults of a DaemonSet in place.

    They are those of its pod template, updateStrategy RollingUpdate with maxUnavailable 1 and maxSurge 0, and
    revisionHistoryLimit 10.
    """
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_missing(strategy, rollingUpdate={})
        set_missing(strategy["rollingUpdate"], maxUnavailable=1, maxSurge=0)
    # upstream's internal type has no pointers here, so its zero values are written
    elif strategy.get("rollingUpdate") is not None:
        set_missing(strategy["rollingUpdate"], maxUnavailable=0, maxSurge=0)
    set_missing(spec, revisionHistoryLimit=10)


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a DaemonSet.

    The selector is not empty and matches the labels of the pod template, which is valid and restarts pods always. The
    update strategy is valid, and minReadySeconds and revisionHistoryLimit are not negative.
    """
    spec = obj.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = validate_label_selector(selector, "spec.selector")
    errors += validate_template_labels(spec) or []
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(field.invalid("spec.selector", {}, "empty selector is invalid for daemonset"))
    errors += pod_template_spec(template, "spec.template") + validate_restart_policy(template, "DaemonSet")
    errors += not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += _daemon_set_strategy(spec.get("updateStrategy") or {})
    return errors + not_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated DaemonSet by the rules for a new one (`validate`); its selector is immutable."""
    return validate_selector_update(new, old) + validate(new)


def _daemon_set_strategy(strategy: Object) -> list[FieldError]:
    path, kind, update = "spec.updateStrategy", strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [field.not_supported(path, workloads.internal_strategy(kind, update), ["RollingUpdate", "OnDelete"])]
    path += ".rollingUpdate"
    if update is None:
        return [field.required(path)]
    unavailable, surge = update.get("maxUnavailable"), update.get("maxSurge")
    errors = rolling.amount(unavailable, f"{path}.maxUnavailable") + rolling.amount(surge, f"{path}.maxSurge")
    errors += rolling.at_most_all(unavailable, f"{path}.maxUnavailable") + rolling.at_most_all(
        surge, f"{path}.maxSurge"
    )
    if rolling.number(unavailable) and rolling.number(surge):
        errors.append(field.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not rolling.number(unavailable) and not rolling.number(surge):
        errors.append(field.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status: no counter is negative, and collisionCount does not decrease."""
    names = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    return validate_counters(new.get("status") or {}, names) + validate_collision_count(new, old)


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about the pod template; none if an update does not change it.

    Args:
        old: the stored object; None on create.
    """
    template, old_template = ((o.get("spec") or {}).get("template") for o in (obj, old or {}))
    return [] if old is not None and same(template, old_template) else template_warnings(template, "spec.template")


def _row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    node_selector = (pod_template(obj)).get("nodeSelector") or {}
    counters = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(obj),
        *(status.get(count) or 0 for count in counters),
        ",".join(f"{k}={node_selector[k]}" for k in sorted(node_selector)) or NONE,
        age(obj),
        *containers(pod_template(obj)),
        selector_text(spec.get("selector")),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Desired", "integer"),
        Column("Current", "integer"),
        Column("Ready", "integer"),
        Column("Up-to-date", "integer"),
        Column("Available", "integer"),
        Column("Node Selector"),
        AGE,
        cells.CONTAINERS,
        cells.IMAGES,
        cells.SELECTOR,
    ),
    _row,
)
