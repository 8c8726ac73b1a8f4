"""batch/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.defaults import workloads as defaults
from tetrapod.core.strategies.job_store import JobStore
from tetrapod.core.strategies.jobs import JobStrategy
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import workloads as tables
from tetrapod.core.validation import cron_jobs, job_status
from tetrapod.core.warnings import workloads
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    cron_job = KindStrategy(
        default=defaults.default_cron_job,
        validate=cron_jobs.validate,
        template=("spec", "jobTemplate", "spec", "template"),
        whole_update=cron_jobs.validate_update,
        warnings=workloads.cron_job,
        status=True,
        generation=["spec"],
    )
    job = JobStrategy()
    return [
        builtin("batch", "cronjobs", cron_job, table=tables.CRON_JOBS, subresources={"status": status_of(cron_job)}),
        replace(
            builtin("batch", "jobs", job, table=tables.JOBS, subresources={"status": status_of(job, validate=job_status.validate)}),
            store=JobStore,
        ),
    ]
