"""Validation of CronJob.

Upstream: pkg/apis/batch/validation/validation.go, validateCronJobSpec.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.core.validation.jobs import validate_template
from tetrapod.core.validation.names import not_negative, one_of
from tetrapod.core.validation.schedules import complaint, is_zone
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch
# The controller appends a dash and ten digits to form the name of a Job, which has at most 63 characters.
_NAME_LIMIT: Final = 52


def validate(obj: Object) -> list[FieldError]:
    """Validate a new CronJob."""
    errors = _spec(obj.get("spec") or {}, None)
    name = obj["metadata"].get("name") or ""
    if len(name) > _NAME_LIMIT:
        errors.append(field.invalid("metadata.name", name, f"must be no more than {_NAME_LIMIT} characters"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated CronJob. A stored schedule with TZ and an unchanged timeZone are accepted."""
    return _spec(new.get("spec") or {}, old.get("spec") or {})


def _spec(spec: Object, before: Object | None) -> list[FieldError]:
    schedule = spec.get("schedule") or ""
    errors = _schedule(schedule, spec.get("timeZone"), before is not None and "TZ" in (before.get("schedule") or ""))
    errors += not_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (before is None or before.get("timeZone") != zone):
        errors += _time_zone(zone)
    errors += one_of(spec.get("concurrencyPolicy"), ["Allow", "Forbid", "Replace"], "spec.concurrencyPolicy")
    errors += validate_template(spec.get("jobTemplate") or {}, "spec.jobTemplate")
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += not_negative(spec.get(name), f"spec.{name}")
    return errors if schedule else [*errors, field.required("spec.schedule")]  # declared in the schema, so it comes last


def _schedule(schedule: str, zone: str | None, had_zone: bool) -> list[FieldError]:
    path, detail = "spec.schedule", complaint(schedule) if schedule else ""
    errors = [field.invalid(path, schedule, detail)] if detail else []
    if "TZ" in schedule:
        if not had_zone:
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(field.invalid(path, schedule, text))
        elif zone is not None:
            errors.append(field.invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
    return errors


def _time_zone(zone: str) -> list[FieldError]:
    path = "spec.timeZone"
    if not zone:
        return [field.invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = field.invalid(path, zone, f"unknown time zone {zone}")
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART(part) for part in zone.split("/")):
        return [unknown]
    errors: list[FieldError] = []
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(field.invalid(path, zone, text))
    return errors if is_zone(zone) else [*errors, unknown]
