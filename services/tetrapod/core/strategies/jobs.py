"""Strategies of Job and CronJob. Upstream: pkg/registry/batch/{job,cronjob}/strategy.go."""

from __future__ import annotations

from tetrapod.core.defaults.workloads import default_cron_job, default_job
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation import cron_jobs, jobs
from tetrapod.core.warnings import workloads
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"


class JobStrategy(KindStrategy):
    """The strategy of Job."""

    def __init__(self) -> None:
        super().__init__(
            default=default_job,
            status=True,
            validate=jobs.validate,
            template=("spec", "template"),
            whole_update=jobs.validate_update,
            warnings=workloads.job,
            generation=["spec"],
            fields={"status.successful": lambda job: str((job.get("status") or {}).get("succeeded", 0))},
        )
        self.garbage_collection_default = "Orphan"

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        if label not in ("metadata.name", "metadata.namespace", "status.successful"):
            raise ValueError(f'field label "{label}" not supported for Job')
        return label, value

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _drop_disabled(obj.get("spec") or {}, {})
        template = (obj.get("spec") or {}).get("template") or {}
        meta = obj["metadata"]
        shared = meta.get("labels") and meta["labels"] == (template.get("metadata") or {}).get("labels")
        generate_selector(obj)
        if shared:
            meta["labels"] = dict(
                obj["spec"]["template"]["metadata"]["labels"]
            )  # upstream shares one map, so the job gets the generated labels too

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        _drop_disabled(new.get("spec") or {}, old.get("spec") or {})

    def canonicalize(self, obj: Object) -> None:
        """Default the labels from the template's labels again: upstream does this on every decode, so also after validation."""
        super().canonicalize(obj)
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)


class CronJobStrategy(KindStrategy):
    """The strategy of CronJob."""

    def __init__(self) -> None:
        super().__init__(
            default=default_cron_job,
            status=True,
            validate=cron_jobs.validate,
            template=("spec", "jobTemplate", "spec", "template"),
            whole_update=cron_jobs.validate_update,
            warnings=workloads.cron_job,
            generation=["spec"],
        )

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _drop_disabled(_job_spec(obj), {})

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        _drop_disabled(_job_spec(new), _job_spec(old))


def _job_spec(cron_job: Object) -> Object:
    return ((cron_job.get("spec") or {}).get("jobTemplate") or {}).get("spec") or {}


def _drop_disabled(spec: Object, before: Object) -> None:
    """Drop the field behind the gate WorkloadWithJob, which is off, unless the stored spec has it. Upstream: pkg/api/job/util.go."""
    if before.get("scheduling") is None:
        spec.pop("scheduling", None)


def generate_selector(job: Object) -> None:
    """Set the selector and the template's labels from the job's uid and name, unless spec.manualSelector is set."""
    spec = job.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    meta = job["metadata"]
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    for key in (_UID, "controller-uid"):
        labels.setdefault(key, meta["uid"])
    for key in (_NAME, "job-name"):
        labels.setdefault(key, meta.get("name") or "")
    selector = spec.get("selector") or {}
    match_labels = dict(selector.get("matchLabels") or {})
    match_labels.setdefault(_UID, meta["uid"])
    spec["selector"] = {**selector, "matchLabels": match_labels}
