"""The strategy of Job, and the store that warns about orphaned pods. Upstream: pkg/registry/batch/job/strategy.go."""

from __future__ import annotations

from typing import Final

from tetrapod.core.batch.jobs import defaults as jobs_defaults
from tetrapod.core.batch.jobs import scheduling
from tetrapod.core.batch.jobs import validation as jobs
from tetrapod.core.batch.jobs import warnings as jobs_warnings
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListPage, ListQuery
from tetrapod.machinery.gvk import Object

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"


_ORPHANS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them"
    " or set propagationPolicy=Orphan to suppress this warning"
)


class JobStrategy(KindStrategy):
    """The strategy of Job, which generates selector and labels. Deleting a Job orphans its pods by default."""

    def __init__(self) -> None:
        super().__init__(
            defaults=jobs_defaults.set_defaults,
            has_status=True,
            validator=jobs.validate,
            pod_template=("spec", "template"),
            whole_update_validator=jobs.validate_update,
            warnings=jobs_warnings.warnings,
            generation=("spec",),
            gated_fields=scheduling.gated("spec"),
            fields={"status.successful": lambda job: str((job.get("status") or {}).get("succeeded", 0))},
        )
        self.garbage_collection_default = "Orphan"

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        if label not in ("metadata.name", "metadata.namespace", "status.successful"):
            raise ValueError(f'field label "{label}" not supported for Job')
        return label, value

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        template = (obj.get("spec") or {}).get("template") or {}
        meta = obj["metadata"]
        shared = meta.get("labels") and meta["labels"] == (template.get("metadata") or {}).get("labels")
        generate_selector(obj)
        if shared:
            # upstream shares one map, so the job gets the generated labels too
            meta["labels"] = dict(obj["spec"]["template"]["metadata"]["labels"])

    def read_back(self, obj: Object) -> None:
        """If the Job has no labels at all, copy those of its pod template to it, in place."""
        super().read_back(obj)
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def generate_selector(job: Object) -> None:
    """Add the job's uid to its selector, and its uid and name to the labels of the pod template, in place.

    Existing labels are kept. With spec.manualSelector, nothing is changed.
    """
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


class JobStore(Store):
    """A store whose deletes warn that pods are orphaned if the delete options set no propagation policy."""

    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None
    ) -> tuple[Entry, bool]:
        _warn(ctx, options)
        return await super().delete(ctx, name, options, validate)

    async def delete_collection(
        self, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None = None
    ) -> ListPage:
        _warn(ctx, options)
        return await super().delete_collection(ctx, options, query, validate)


def _warn(ctx: Context, options: Object) -> None:
    explicit = options.get("propagationPolicy") is not None or options.get("orphanDependents") is not None
    if not explicit and _ORPHANS not in ctx.warnings:
        ctx.warnings.append(_ORPHANS)
