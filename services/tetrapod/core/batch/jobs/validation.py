"""Validation of Job and JobTemplate.

Upstream: pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.batch.jobs import policies as job_policies
from tetrapod.core.batch.jobs import scheduling
from tetrapod.core.podspec.workloads import pod_template_spec, validate_template_labels
from tetrapod.core.validation import differences
from tetrapod.core.validation.differences import internal, pod_template
from tetrapod.core.validation.names import known, not_negative
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field, go_structs
from tetrapod.machinery.domain_paths import domain_prefixed_path
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import from_label_selector, validate_label_selector
from tetrapod.machinery.names import is_dns1123_label

_MOST_PARALLEL: Final = 100_000
_MOST_FAILED: Final = 100_000
_MANY: Final = 100_000
_MANY_LIMIT: Final = 10_000
_MANY_TEXT: Final = (
    f"must be less than or equal to {_MANY_LIMIT} when completions are above {_MANY} and used with backoff limit per "
    "index"
)
_NUMBERS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
)
_FINISHING: Final = ("OnFailure", "Never")


def validate(obj: Object) -> list[FieldError]:
    """Validate a new Job.

    The spec is valid by `_spec`. Unless manualSelector is set, the template has the generated labels, and the selector
    matches them. Host names of an indexed Job's pods are DNS labels.
    """
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name") or ""
    errors = _generated_selector(obj) + _spec(spec)
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        hostname = f"{name}-{completions - 1}"
        if is_dns1123_label(hostname):
            text = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(field.invalid("metadata.name", name, text))
    return errors + scheduling.declared_rules(spec, None, "spec")


def _generated_selector(obj: Object) -> list[FieldError]:
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    uid, name = meta.get("uid") or "", meta.get("name") or ""
    expected = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    errors: list[FieldError] = []
    for key, value in expected.items():
        at = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(field.required(at, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(field.invalid(at, go_structs.labels(labels), f"must be '{value}'"))
    try:
        parsed = from_label_selector(spec["selector"])
    except ValueError:
        return errors
    if not parsed.matches(expected):
        errors.append(
            field.invalid("spec.selector", go_structs.selector(spec["selector"]), "`selector` not auto-generated")
        )
    return errors


def _spec(spec: Object) -> list[FieldError]:
    errors = job_spec(spec, "spec")
    if spec.get("selector") is None:
        errors.append(field.required("spec.selector"))
    else:
        errors += validate_label_selector(spec["selector"], "spec.selector")
    return errors + (validate_template_labels(spec) or [])


def job_spec(spec: Object, path: str) -> list[FieldError]:
    """Validate the parts of a Job spec that the job templates of CronJobs have too: all but the selector.

    - Numbers are not negative, and managedBy is a name with a domain.
    - completionMode and the numbers that depend on it are consistent; successPolicy requires the mode Indexed.
    - The two policies are valid, and podReplacementPolicy is Failed if there is a podFailurePolicy.
    - The pod template is valid, with restartPolicy Never or OnFailure.

    Args:
        path: the field path of the spec, for the errors.
    """
    errors = [error for name in _NUMBERS for error in not_negative(spec.get(name), f"{path}.{name}")]
    if (most := spec.get("maxFailedIndexes")) is not None:
        errors += not_negative(most, f"{path}.maxFailedIndexes")
        if spec.get("backoffLimitPerIndex") is None:
            errors.append(field.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        errors += domain_prefixed_path(manager, f"{path}.managedBy")
        if len(manager.encode()) > 63:
            errors.append(field.too_long(f"{path}.managedBy", 63))
    errors += _completion_mode(spec, path)
    if spec.get("podFailurePolicy") is not None:
        errors += job_policies.failure_policy(spec, f"{path}.podFailurePolicy")
    if (success := spec.get("successPolicy")) is not None:
        if spec.get("completionMode") != "Indexed":
            value = job_policies.shown_success(success)
            errors.append(field.invalid(f"{path}.successPolicy", value, "requires indexed completion mode"))
        else:
            errors += job_policies.success_policy(spec, f"{path}.successPolicy")
    if (replacement := spec.get("podReplacementPolicy")) is not None:
        allowed = ["Failed"] if spec.get("podFailurePolicy") is not None else ["Failed", "TerminatingOrFailed"]
        errors += known(replacement, allowed, f"{path}.podReplacementPolicy")
    errors += scheduling.group_rules(spec, path)
    errors += pod_template_spec(spec.get("template") or {}, f"{path}.template")
    return errors + _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _completion_mode(spec: Object, path: str) -> list[FieldError]:
    mode, completions, most = spec.get("completionMode"), spec.get("completions"), spec.get("maxFailedIndexes")
    per_index, parallelism = spec.get("backoffLimitPerIndex"), spec.get("parallelism")
    errors: list[FieldError] = []
    if mode not in (None, "NonIndexed", "Indexed"):
        errors.append(field.not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"]))
    if mode == "Indexed":
        errors += _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for name, value in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", most)):
            if value is not None:
                errors.append(field.invalid(f"{path}.{name}", value, "requires indexed completion mode"))
    if mode == "Indexed" and (completions or 0) > _MANY and per_index is not None:
        if most is None:
            errors.append(
                field.required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MANY}")
            )
        for name, value in (("parallelism", parallelism), ("maxFailedIndexes", most)):
            if (value or 0) > _MANY_LIMIT:
                errors.append(field.invalid(f"{path}.{name}", value, _MANY_TEXT))
    return errors


def _indexed(spec: Object, path: str) -> list[FieldError]:
    completions, most, parallelism = spec.get("completions"), spec.get("maxFailedIndexes"), spec.get("parallelism")
    errors: list[FieldError] = []
    if completions is None:
        errors.append(field.required(f"{path}.completions", "when completion mode is Indexed"))
    if (parallelism or 0) > _MOST_PARALLEL:
        text = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        errors.append(field.invalid(f"{path}.parallelism", parallelism, text))
    if completions is not None and most is not None and most > completions:
        errors.append(field.invalid(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions"))
    if (most or 0) > _MOST_FAILED:
        errors.append(field.invalid(f"{path}.maxFailedIndexes", most, f"must be less than or equal to {_MOST_FAILED}"))
    return errors


def _restart_policy(spec: Object, path: str) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        return [field.required(path, f"valid values: {', '.join(map(go_quote, _FINISHING))}")]
    if policy not in _FINISHING:
        return [field.not_supported(path, policy, _FINISHING)]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [field.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def validate_template(template: Object, path: str) -> list[FieldError]:
    """Validate the jobTemplate of a CronJob by the rules of `job_spec`. It cannot have a selector of its own.

    Args:
        path: the field path of the template, for the errors.
    """
    spec = template.get("spec") or {}
    errors = job_spec(spec, f"{path}.spec")
    if (selector := spec.get("selector")) is not None:
        errors.append(
            field.invalid(f"{path}.spec.selector", go_structs.selector(selector), "`selector` will be auto-generated")
        )
    if spec.get("manualSelector"):
        errors.append(field.not_supported(f"{path}.spec.manualSelector", True, ["nil", "false"]))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Job.

    selector, completionMode, podFailurePolicy, backoffLimitPerIndex, managedBy and successPolicy are immutable. So is
    the pod template, except while the Job is suspended. completions may change only together with parallelism, in an
    indexed Job.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _spec(spec) + _completions(spec, old_spec)
    errors += differences.immutable(
        spec.get("selector"), old_spec.get("selector"), "spec.selector", go_structs.selector(spec.get("selector"))
    )
    errors += _template_kept(spec, old_spec, old.get("status") or {})
    for name, form in _FROZEN.items():
        value, old_value = spec.get(name), old_spec.get(name)
        # All are pointers upstream, so an empty value differs from an unset one.
        unchanged = same(value, old_value) and (value is None) is (old_value is None)
        errors += (
            []
            if unchanged
            else [field.invalid(f"spec.{name}", form(value) if value is not None else None, "field is immutable")]
        )
    errors += scheduling.changed_policy(spec, old_spec)
    return errors + scheduling.declared_rules(spec, old_spec, "spec")


_FROZEN: Final = {
    "completionMode": field.as_typed,
    "podFailurePolicy": job_policies.shown_failure,
    "backoffLimitPerIndex": field.as_typed,
    "managedBy": field.as_typed,
    "successPolicy": job_policies.shown_success,
}


def _completions(spec: Object, existing: Object) -> list[FieldError]:
    path, completions = "spec.completions", spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        return differences.immutable(completions, existing.get("completions"), path)
    if completions in (None, existing.get("completions"), spec.get("parallelism")):
        return []
    return [field.invalid(path, completions, "can only be modified in tandem with spec.parallelism")]


def _template_kept(spec: Object, existing: Object, status: Object) -> list[FieldError]:
    """Reject a changed pod template.

    While a Job is suspended and has no active pods, the fields that affect scheduling may change: labels, annotations,
    node selector, node affinity, tolerations, scheduling gates and resources.

    Args:
        spec: the new Job spec.
        existing: the stored Job spec.
        status: the stored status.
    """
    template, old = spec.get("template") or {}, existing.get("template") or {}
    directives, resources = _mutable_parts(existing, status)
    pod_spec, expected = template.get("spec") or {}, dict(old.get("spec") or {})
    if directives:
        for name in ("nodeSelector", "tolerations", "schedulingGates"):
            expected[name] = pod_spec.get(name)
        expected["affinity"] = _affinity(pod_spec.get("affinity"), expected.get("affinity"))
        meta = template.get("metadata") or {}
        changeable = {name: meta.get(name) for name in ("labels", "annotations")}
        old = {**old, "metadata": {**(old.get("metadata") or {}), **changeable}}
    if not resources:
        return differences.immutable(template, {**old, "spec": expected}, "spec.template", pod_template(template))
    for kind in ("containers", "initContainers"):
        expected[kind] = _resources_of(expected.get(kind) or [], pod_spec.get(kind) or [])
    return differences.immutable(pod_spec, expected, "spec.template.spec", internal("PodSpec", pod_spec))


def _mutable_parts(existing: Object, status: Object) -> tuple[bool, bool]:
    """Return whether an update may change the scheduling directives and the resources of the pod template.

    Args:
        existing: the stored Job spec.
        status: the stored status.

    Upstream: pkg/registry/batch/job/strategy.go, validationOptionsForJob
    """
    mutable = _may_reschedule(existing, status)
    directives = bool(existing.get("suspend")) and not status.get("startTime")
    if feature_gates.enabled("MutableSchedulingDirectivesForSuspendedJobs"):
        directives = mutable
    return directives, mutable and feature_gates.enabled("MutablePodResourcesForSuspendedJobs")


def _may_reschedule(existing: Object, status: Object) -> bool:
    """Return whether the stored Job is suspended, has no active pods, and is reported as Suspended or has not started.

    Upstream: pkg/registry/batch/job/strategy.go, shouldAllowMutablePodTemplate
    """
    if not existing.get("suspend") or status.get("active"):
        return False
    suspended = any(c.get("type") == "Suspended" and c.get("status") == "True" for c in status.get("conditions") or ())
    return suspended or not status.get("startTime")


def _affinity(new: Object | None, old: Object | None) -> Object | None:
    """Return a copy of the old affinity with the node affinity of the new one; None if nothing is left.

    Args:
        new: the new affinity, or None.
        old: the stored affinity, or None.
    """
    merged = {k: v for k, v in (old or {}).items() if k != "nodeAffinity"}
    if new is None:
        return merged or None
    return {**merged, "nodeAffinity": new.get("nodeAffinity")}


def _resources_of(old: list[Object], new: list[Object]) -> list[Object]:
    """Return the stored containers with the resources of the new containers that have the same name and place.

    The stored containers are returned as they are if the new ones are more or fewer.

    Args:
        old: the stored containers.
        new: the new containers.
    """
    if len(old) != len(new):
        return old
    return [
        {**one, "resources": other.get("resources")} if one.get("name") == other.get("name") else one
        for one, other in zip(old, new, strict=True)
    ]
