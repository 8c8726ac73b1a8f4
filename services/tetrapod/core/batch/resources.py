"""The list of the kinds of batch."""

from __future__ import annotations

from tetrapod.core.batch import cron_jobs
from tetrapod.core.batch.jobs import definition as jobs
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group batch."""
    return [cron_jobs.definition(), jobs.definition()]
