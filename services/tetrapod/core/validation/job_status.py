"""Status of a Job: how conditions, counters and times agree, and what may not go back (upstream: validateJobStatus).

Upstream checks what an update changes; a status that was wrong before and stays so is let through, as there.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.validation.job_indexes import count_indexes, overlap
from tetrapod.core.validation.job_policies import omitted
from tetrapod.core.validation.names import not_negative
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_COUNTERS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_NO_COMPLETE: Final = "cannot set completionTime when there is no Complete=True condition"
_IMMUTABLE: Final = "field is immutable"


def _is(status: Object, kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in status.get("conditions") or ())


def validate(new: Object, old: Object) -> list[FieldError]:
    spec, status, before = new.get("spec") or {}, new.get("status") or {}, old.get("status") or {}
    errors = [error for name in _COUNTERS for error in not_negative(status.get(name), f"status.{name}")]
    errors += _uncounted(status.get("uncountedTerminatedPods") or {})
    errors += _conditions_and_times(status, before) + _finished(status)
    errors += _indexes(spec, status) + _pods(status) + _criteria(spec, status)
    return errors + _transitions(spec, status, before)


def _uncounted(pods: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for i, uid in enumerate(pods.get(kind) or ()):
            at = f"status.uncountedTerminatedPods.{kind}[{i}]"
            if not uid:
                errors.append(field.invalid(at, uid, "must not be empty"))
            elif uid in seen:
                errors.append(field.duplicate(at, uid))
            seen.add(uid)
    return errors


def _conditions_and_times(status: Object, before: Object) -> list[FieldError]:
    complete, failed, path = _is(status, "Complete"), _is(status, "Failed"), "status.conditions"
    finished, started = status.get("completionTime"), status.get("startTime")
    errors: list[FieldError] = []
    if complete and failed:
        errors.append(omitted(path, "cannot set Complete=True and Failed=true conditions"))
    if complete and _is(status, "FailureTarget"):
        errors.append(omitted(path, "cannot set Complete=True and FailureTarget=true conditions"))
    if finished and not complete:
        errors.append(field.invalid("status.completionTime", finished, _NO_COMPLETE))
    if not finished and complete:
        errors.append(field.required("status.completionTime", "completionTime is required for Complete jobs"))
    if finished and started and finished < started:
        errors.append(field.invalid("status.completionTime", finished, "must be equal to or after `startTime`"))
    if failed and not _is(status, "FailureTarget"):
        errors.append(omitted(path, "cannot set Failed=True condition without the FailureTarget=true condition"))
    if complete and not _is(status, "SuccessCriteriaMet"):
        errors.append(omitted(path, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"))
    return errors


def _finished(status: Object) -> list[FieldError]:
    if not _is(status, "Complete") and not _is(status, "Failed"):
        return []
    errors: list[FieldError] = []
    active, uncounted = status.get("active") or 0, status.get("uncountedTerminatedPods") or {}
    if active > 0:
        errors.append(field.invalid("status.active", active, "active>0 is invalid for finished job"))
    if not status.get("startTime"):
        errors.append(field.required("status.startTime", "startTime is required for finished job"))
    if uncounted.get("succeeded") or uncounted.get("failed"):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        text = "uncountedTerminatedPods needs to be empty for finished job"
        errors.append(field.invalid("status.uncountedTerminatedPods", shown, text))
    return errors


def _indexes(spec: Object, status: Object) -> list[FieldError]:
    completions, completed, failed = spec.get("completions"), status.get("completedIndexes") or "", status.get("failedIndexes")
    per_index = spec.get("backoffLimitPerIndex") is not None
    errors: list[FieldError] = []
    if completions is not None:
        errors += _format("completedIndexes", completed, completions)
        if per_index and failed is not None:
            errors += _format("failedIndexes", failed, completions)
    if completed and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(field.invalid("status.completedIndexes", completed, text))
    if failed is not None and not per_index:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(field.invalid("status.failedIndexes", failed, text))
    if completions is not None and failed is not None and (shared := overlap(completed, failed, completions)) is not None:
        text = f"failedIndexes and completedIndexes overlap at index: {shared}"
        errors.append(field.invalid("status.failedIndexes", failed, text))
    return errors


def _format(name: str, text: str, completions: int) -> list[FieldError]:
    try:
        count_indexes(text, completions)
    except ValueError as error:
        return [field.invalid(f"status.{name}", text, f"error parsing {name}: {error}")]
    return []


def _pods(status: Object) -> list[FieldError]:
    terminating, ready = status.get("terminating") or 0, status.get("ready")
    errors: list[FieldError] = []
    if terminating > 0 and (_is(status, "Complete") or _is(status, "Failed")):
        errors.append(field.invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    if ready is not None and ready > (status.get("active") or 0):
        errors.append(field.invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _criteria(spec: Object, status: Object) -> list[FieldError]:
    met, path = _is(status, "SuccessCriteriaMet"), "status.conditions"
    errors: list[FieldError] = []
    if met and _is(status, "Failed"):
        errors.append(omitted(path, "cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if met and _is(status, "FailureTarget"):
        errors.append(omitted(path, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if spec.get("successPolicy") is not None and not met and _is(status, "Complete"):
        text = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(omitted(path, text))
    return errors


def _transitions(spec: Object, status: Object, before: Object) -> list[FieldError]:
    errors = [
        omitted("status.conditions", f"cannot disable the terminal {kind}=True condition")
        for kind in ("Failed", "Complete", "FailureTarget")
        if _is(before, kind) and not _is(status, kind)
    ]
    for name in ("failed", "succeeded"):
        now = status.get(name) or 0
        if now < (before.get(name) or 0):
            errors.append(field.invalid(f"status.{name}", now, f"cannot decrease the {name} counter"))
    errors += _times(spec, status, before)
    if _is(before, "SuccessCriteriaMet") and not _is(status, "SuccessCriteriaMet"):
        errors.append(omitted("status.conditions", "cannot disable the SuccessCriteriaMet=True condition"))
    if _is(before, "Complete") and not _is(before, "SuccessCriteriaMet") and _is(status, "SuccessCriteriaMet"):
        text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(omitted("status.conditions", text))
    return errors


def _times(spec: Object, status: Object, before: Object) -> list[FieldError]:
    finished: Any = status.get("completionTime")
    was_finished, started, was_started = before.get("completionTime"), status.get("startTime"), before.get("startTime")
    errors: list[FieldError] = []
    if finished and was_finished and finished != was_finished:
        errors.append(field.invalid("status.completionTime", finished, _IMMUTABLE))
    if was_started and started != was_started and not spec.get("suspend"):
        if started:
            errors.append(field.invalid("status.startTime", started, f"{_IMMUTABLE} for unsuspended job once set"))
        else:
            errors.append(field.required("status.startTime", "startTime cannot be removed for unsuspended job"))
    return errors
