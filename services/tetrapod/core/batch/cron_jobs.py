"""The definition of CronJobs, with their strategy, defaults, validation, warnings and table columns.

Upstream: pkg/registry/batch/cronjob/strategy.go and pkg/apis/batch/validation.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.core import cells
from tetrapod.core.batch.jobs import defaults as jobs_defaults
from tetrapod.core.batch.jobs import scheduling
from tetrapod.core.batch.jobs import warnings as jobs_warnings
from tetrapod.core.batch.jobs.validation import validate_template
from tetrapod.core.batch.schedules import schedule_error, zone_error
from tetrapod.core.cells import AGE, NAME, NONE, age, containers, name_of, selector_text, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.defaults import set_missing
from tetrapod.core.podspec.warnings import name_warnings, same_generation
from tetrapod.core.validation.names import not_negative, one_of
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten
from tetrapod.generic.registry.status import PlainStatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import since

_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch
# The controller appends a dash and ten digits to form the name of a Job, which has at most 63 characters.
_NAME_LIMIT: Final = 52

_ZONE: Final = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead,"
    " see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def definition() -> ResourceDefinition:
    """Return the resource definition of CronJobs: versions, strategy, subresources and columns."""
    strategy = CronJobStrategy()
    return builtin("batch", "cronjobs", strategy, table=TABLE, subresources={"status": PlainStatusStrategy(strategy)})


_FORM: Final = HandWritten(
    "spec.schedule",
    "spec.startingDeadlineSeconds",
    "spec.timeZone",
    "spec.concurrencyPolicy",
    "spec.jobTemplate",
)


class CronJobStrategy(KindStrategy):
    """The strategy of CronJob. Writes drop fields of the job template that belong to disabled feature gates."""

    def __init__(self) -> None:
        super().__init__(
            defaults=set_defaults,
            has_status=True,
            validator=validate,
            pod_template=("spec", "jobTemplate", "spec", "template"),
            whole_update_validator=validate_update,
            warnings=warnings,
            generation=("spec",),
            hand_written=_FORM,
            gated_fields=scheduling.gated("spec.jobTemplate.spec"),
        )


def set_defaults(obj: Object) -> None:
    """Set the defaults of a CronJob and of its job template in place.

    They are concurrencyPolicy Allow, suspend false, three successful and one failed job in the history, and those of
    `set_spec_defaults` of Jobs.
    """
    spec = obj.setdefault("spec", {})
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    set_missing(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    jobs_defaults.set_spec_defaults((spec.get("jobTemplate") or {}).get("spec") or {})


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec and the name of a new CronJob; the name has at most 52 characters.

    A valid schedule is required, without TZ or CRON_TZ. timeZone and concurrencyPolicy are known, numbers are not
    negative, and the job template is valid.
    """
    spec = obj.get("spec") or {}
    errors = _spec(spec, None)
    name = obj["metadata"].get("name") or ""
    if len(name) > _NAME_LIMIT:
        errors.append(field.invalid("metadata.name", name, f"must be no more than {_NAME_LIMIT} characters"))
    return errors + _declared_rules(spec, None)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate the spec of an updated CronJob by the rules for a new one, with two exceptions.

    A schedule with TZ or CRON_TZ is accepted if the stored one has TZ too, and an unknown timeZone if it is unchanged.
    """
    spec, existing = new.get("spec") or {}, old.get("spec") or {}
    return _spec(spec, existing) + _declared_rules(spec, existing)


def _spec(spec: Object, existing: Object | None) -> list[FieldError]:
    schedule = spec.get("schedule") or ""
    errors = _schedule(
        schedule, spec.get("timeZone"), existing is not None and "TZ" in (existing.get("schedule") or "")
    )
    errors += not_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (existing is None or existing.get("timeZone") != zone):
        errors += _time_zone(zone)
    errors += one_of(spec.get("concurrencyPolicy"), ["Allow", "Forbid", "Replace"], "spec.concurrencyPolicy")
    errors += validate_template(spec.get("jobTemplate") or {}, "spec.jobTemplate")
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += not_negative(spec.get(name), f"spec.{name}")
    return errors


def _declared_rules(spec: Object, existing: Object | None) -> list[FieldError]:
    """Check the rules that upstream declares in the schema, whose errors come last."""
    errors = [] if spec.get("schedule") else [field.required("spec.schedule")]
    job, stored = (((each or {}).get("jobTemplate") or {}).get("spec") or {} for each in (spec, existing))
    return errors + scheduling.declared_rules(job, None if existing is None else stored, "spec.jobTemplate.spec")


def _schedule(schedule: str, zone: str | None, had_zone: bool) -> list[FieldError]:
    path, detail = "spec.schedule", schedule_error(schedule) if schedule else ""
    errors = [field.invalid(path, schedule, detail)] if detail else []
    if "TZ" in schedule:
        if not had_zone:
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(field.invalid(path, schedule, text))
        elif zone is not None:
            errors.append(field.invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
    return errors


def _time_zone(zone: str) -> list[FieldError]:
    path, shown = "spec.timeZone", field.TypedText(zone)  # a pointer in Go
    if not zone:
        return [field.invalid(path, shown, "timeZone must be nil or non-empty string")]
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART(part) for part in zone.split("/")):
        return [field.invalid(path, shown, f"unknown time zone {zone}")]
    errors: list[FieldError] = []
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(field.invalid(path, shown, text))
    error = zone_error(zone)
    return [*errors, field.invalid(path, shown, error)] if error else errors


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about the name, the job template, and TZ or CRON_TZ in the schedule of an updated CronJob.

    An update that does not change the generation gives no warnings about the job template.

    Args:
        old: the stored object; None on create.
    """
    warnings = name_warnings(obj, old)
    spec = obj.get("spec") or {}
    if not same_generation(obj, old):
        warnings += jobs_warnings.job_spec_warnings(
            (spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec"
        )
    if old is not None and "TZ" in (spec.get("schedule") or ""):
        warnings.append(_ZONE)
    return warnings


_UNSET: Final = "<unset>"


def _row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    last = status.get("lastScheduleTime")
    job_spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        _UNSET if spec.get("suspend") is None else "True" if spec["suspend"] else "False",
        len(status.get("active") or []),
        since(last) if last else NONE,
        age(obj),
        *containers((job_spec.get("template") or {}).get("spec") or {}),
        selector_text(job_spec.get("selector")),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Schedule"),
        Column("Timezone"),
        Column("Suspend", "boolean"),
        Column("Active", "integer"),
        Column("Last Schedule"),
        AGE,
        cells.CONTAINERS,
        cells.IMAGES,
        cells.SELECTOR,
    ),
    _row,
)
