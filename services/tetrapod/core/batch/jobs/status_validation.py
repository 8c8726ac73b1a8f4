"""Validation of the status of a Job.

The rules cover the consistency of conditions, counters and times, and transitions that are not allowed. As upstream,
most rules apply only to what an update changes, so an invalid status that is already stored is accepted.

Upstream: pkg/apis/batch/validation/validation.go, validateJobStatus.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.batch.jobs.indexes import count_indexes, overlap
from tetrapod.core.batch.jobs.policies import omitted
from tetrapod.core.validation.names import not_negative
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_COUNTERS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_NO_COMPLETE: Final = "cannot set completionTime when there is no Complete=True condition"
_IMMUTABLE: Final = "field is immutable"


def _is(status: Object, kind: str, value: str = "True") -> bool:
    return any(c.get("type") == kind and c.get("status") == value for c in status.get("conditions") or ())


def _finishes(status: Object) -> bool:
    return _is(status, "Complete") or _is(status, "Failed")


class _Changes:
    """The differences between a Job's new status and its stored one.

    Attributes:
        finished: whether exactly one of them has Complete or Failed with status "True".

    Args:
        status: the new status.
        existing: the stored status.
    """

    def __init__(self, status: Object, existing: Object) -> None:
        self._status, self._before = status, existing
        self.finished = _finishes(status) is not _finishes(existing)

    def condition(self, *kinds: str) -> bool:
        """Return whether the update changes one of these condition types to or from status "True"."""
        return any(_is(self._status, kind) is not _is(self._before, kind) for kind in kinds)

    def field(self, *names: str) -> bool:
        """Return whether the update changes one of these status fields."""
        return any(self._status.get(name) != self._before.get(name) for name in names)


def validate(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated status of a Job.

    Counters are not negative, and failed and succeeded do not decrease (succeeded may in an elastic indexed Job).
    Conditions, times and indexes agree with each other and with the spec. Terminal conditions stay. As upstream, most
    rules are checked only if a related field changes.
    """
    spec, status, old_status = new.get("spec") or {}, new.get("status") or {}, old.get("status") or {}
    changes = _Changes(status, old_status)
    errors = [error for name in _COUNTERS for error in not_negative(status.get(name), f"status.{name}")]
    errors += _uncounted(status.get("uncountedTerminatedPods") or {})
    errors += _conditions_and_times(status, changes) + _finished(spec, status, changes)
    errors += _indexes(spec, status, changes) + _pods(status, changes) + _criteria(spec, status)
    return errors + _transitions(spec, status, old_status)


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


def _conditions_and_times(status: Object, changes: _Changes) -> list[FieldError]:
    complete, failed, path = _is(status, "Complete"), _is(status, "Failed"), "status.conditions"
    finished, started = status.get("completionTime"), status.get("startTime")
    completes = changes.condition("Complete")
    errors: list[FieldError] = []
    if changes.condition("Complete", "Failed") and complete and failed:
        errors.append(omitted(path, "cannot set Complete=True and Failed=true conditions"))
    if changes.condition("Complete", "FailureTarget") and complete and _is(status, "FailureTarget"):
        errors.append(omitted(path, "cannot set Complete=True and FailureTarget=true conditions"))
    if completes or changes.field("completionTime"):
        if finished and not complete:
            errors.append(field.invalid("status.completionTime", finished, _NO_COMPLETE))
        if not finished and complete:
            errors.append(field.required("status.completionTime", "completionTime is required for Complete jobs"))
    if changes.field("startTime", "completionTime") and finished and started and finished < started:
        errors.append(field.invalid("status.completionTime", finished, "must be equal to or after `startTime`"))
    if (changes.condition("Failed") or changes.field("failedIndexes")) and failed and not _is(status, "FailureTarget"):
        errors.append(omitted(path, "cannot set Failed=True condition without the FailureTarget=true condition"))
    if changes.condition("Complete", "SuccessCriteriaMet") and complete and not _is(status, "SuccessCriteriaMet"):
        errors.append(omitted(path, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"))
    return errors


def _finished(spec: Object, status: Object, changes: _Changes) -> list[FieldError]:
    if not _finishes(status):
        return []
    errors: list[FieldError] = []
    active, uncounted = status.get("active") or 0, status.get("uncountedTerminatedPods") or {}
    if (changes.finished or changes.field("active")) and active > 0:
        errors.append(field.invalid("status.active", active, "active>0 is invalid for finished job"))
    never_began = spec.get("suspend") is True and spec.get("completions") == 0
    if (changes.finished or changes.field("startTime")) and not never_began and not status.get("startTime"):
        errors.append(field.required("status.startTime", "startTime is required for finished job"))
    remain = uncounted.get("succeeded") or uncounted.get("failed")
    if (changes.finished or changes.field("uncountedTerminatedPods")) and remain:
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        errors.append(field.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return errors


def _indexes(spec: Object, status: Object, changes: _Changes) -> list[FieldError]:
    completions, completed, failed = (
        spec.get("completions"),
        status.get("completedIndexes") or "",
        status.get("failedIndexes"),
    )
    per_index = spec.get("backoffLimitPerIndex") is not None
    completes, fails = changes.field("completedIndexes"), changes.field("failedIndexes")
    errors: list[FieldError] = []
    if completions is not None:
        if completes:
            errors += _format("completedIndexes", completed, completions)
        if fails and per_index and failed is not None:
            errors += _format("failedIndexes", failed, completions)
    if completes and completed and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(field.invalid("status.completedIndexes", completed, text))
    if fails and failed is not None and not per_index:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(field.invalid("status.failedIndexes", failed, text))
    shared = overlap(completed, failed, completions) if completions is not None and failed is not None else None
    if (completes or fails) and shared is not None:
        text = f"failedIndexes and completedIndexes overlap at index: {shared}"
        errors.append(field.invalid("status.failedIndexes", failed, text))
    return errors


def _format(name: str, text: str, completions: int) -> list[FieldError]:
    try:
        count_indexes(text, completions)
    except ValueError as error:
        return [field.invalid(f"status.{name}", text, f"error parsing {name}: {error}")]
    return []


def _pods(status: Object, changes: _Changes) -> list[FieldError]:
    terminating, ready = status.get("terminating") or 0, status.get("ready")
    errors: list[FieldError] = []
    if (changes.finished or changes.field("terminating")) and terminating > 0 and _finishes(status):
        errors.append(field.invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    if changes.field("ready", "active") and ready is not None and ready > (status.get("active") or 0):
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


def _transitions(spec: Object, status: Object, existing: Object) -> list[FieldError]:
    errors = [
        omitted("status.conditions", f"cannot disable the terminal {kind}=True condition")
        for kind in ("Failed", "Complete", "FailureTarget")
        if _is(existing, kind) and not _is(status, kind)
    ]
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    # Scaling down an elastic indexed job drops the succeeded indexes at or above completions.
    for name in ("failed",) if elastic else ("failed", "succeeded"):
        count = status.get(name) or 0
        if count < (existing.get(name) or 0):
            errors.append(field.invalid(f"status.{name}", count, f"cannot decrease the {name} counter"))
    errors += _times(spec, status, existing)
    if _is(existing, "SuccessCriteriaMet") and not _is(status, "SuccessCriteriaMet"):
        errors.append(omitted("status.conditions", "cannot disable the SuccessCriteriaMet=True condition"))
    if _is(existing, "Complete") and not _is(existing, "SuccessCriteriaMet") and _is(status, "SuccessCriteriaMet"):
        text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(omitted("status.conditions", text))
    return errors


def _times(spec: Object, status: Object, existing: Object) -> list[FieldError]:
    finished: Any = status.get("completionTime")
    was_finished, started, was_started = (
        existing.get("completionTime"),
        status.get("startTime"),
        existing.get("startTime"),
    )
    errors: list[FieldError] = []
    if finished and was_finished and finished != was_finished:
        errors.append(field.invalid("status.completionTime", finished, _IMMUTABLE))
    resumes = _is(existing, "Suspended") and _is(status, "Suspended", "False")
    if was_started and started != was_started and not spec.get("suspend") and not resumes:
        errors.append(field.invalid("status.startTime", started or None, f"{_IMMUTABLE} for unsuspended job once set"))
    return errors
