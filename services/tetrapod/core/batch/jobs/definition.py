"""The definition and the columns of Jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core import cells
from tetrapod.core.batch.jobs import status_validation as job_status
from tetrapod.core.batch.jobs.strategy import JobStore, JobStrategy
from tetrapod.core.cells import (
    AGE,
    NAME,
    age,
    containers,
    name_of,
    pod_template,
    selector_text,
    spec_of,
    status_of,
)
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.golang.durations import human_duration
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import TimedCell, since
from tetrapod.machinery.timestamps import parse


def definition() -> ResourceDefinition:
    """Return the resource definition of Jobs: versions, strategy, subresources and columns."""
    strategy = JobStrategy()
    status = StatusStrategy(strategy, validate=job_status.validate)
    return replace(builtin("batch", "jobs", strategy, table=TABLE, subresources={"status": status}), store=JobStore)


def _job_status(obj: Object) -> str:
    conditions = {c.get("type"): c.get("status") for c in status_of(obj).get("conditions") or []}
    if conditions.get("Complete") == "True":
        return "Complete"
    if conditions.get("Failed") == "True":
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if conditions.get("Suspended") == "True":
        return "Suspended"
    if conditions.get("FailureTarget") == "True":
        return "FailureTarget"
    return "SuccessCriteriaMet" if conditions.get("SuccessCriteriaMet") == "True" else "Running"


def _row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    succeeded = status.get("succeeded") or 0
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        parallelism = spec.get("parallelism") or 0
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    duration: TimedCell | str = ""
    if started := status.get("startTime"):
        ended = status.get("completionTime")
        duration = human_duration((parse(ended) - parse(started)).total_seconds()) if ended else since(started)
    return [
        name_of(obj),
        _job_status(obj),
        completions,
        duration,
        age(obj),
        *containers(pod_template(obj)),
        selector_text(spec.get("selector")),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Status"),
        Column("Completions"),
        Column("Duration"),
        AGE,
        cells.CONTAINERS,
        cells.IMAGES,
        cells.SELECTOR,
    ),
    _row,
)
