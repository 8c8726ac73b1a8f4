"""Resource definitions of batch/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.kind_strategy import status_strategy
from tetrapod.core.strategies.job_store import JobStore
from tetrapod.core.strategies.jobs import CronJobStrategy, JobStrategy
from tetrapod.core.tables import workloads as tables
from tetrapod.core.validation import job_status
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import PlainStatusStrategy


def cron_jobs() -> ResourceDefinition:
    """Return the definition of CronJobs."""
    strategy = CronJobStrategy()
    return builtin("batch", "cronjobs", strategy, table=tables.CRON_JOBS, subresources={"status": PlainStatusStrategy(strategy)})


def jobs() -> ResourceDefinition:
    """Return the definition of Jobs."""
    strategy = JobStrategy()
    status = status_strategy(strategy, validate=job_status.validate)
    return replace(builtin("batch", "jobs", strategy, table=tables.JOBS, subresources={"status": status}), store=JobStore)


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [cron_jobs(), jobs()]
