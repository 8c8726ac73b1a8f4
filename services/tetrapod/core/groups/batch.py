"""Resource definitions of batch/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.strategies.job_store import JobStore
from tetrapod.core.strategies.jobs import CronJobStrategy, JobStrategy
from tetrapod.core.strategies.simple import status_of
from tetrapod.core.tables import workloads as tables
from tetrapod.core.validation import job_status
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import PlainStatusStrategy


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    cron_job, job = CronJobStrategy(), JobStrategy()
    return [
        builtin("batch", "cronjobs", cron_job, table=tables.CRON_JOBS, subresources={"status": PlainStatusStrategy(cron_job)}),
        replace(
            builtin("batch", "jobs", job, table=tables.JOBS, subresources={"status": status_of(job, validate=job_status.validate)}),
            store=JobStore,
        ),
    ]
