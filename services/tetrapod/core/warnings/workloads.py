"""Warnings about kinds with a pod template.

Each function is the `warnings` of a `KindStrategy`: it gets the new object and, on updates, the old one. Updates that do not change the
generation get no template warnings.
Upstream: pkg/registry/{apps,batch}, WarningsOnCreate and WarningsOnUpdate.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.claim_spec import claim_spec_warnings
from tetrapod.core.podspec.warnings import name_warnings, same_generation, template_warnings
from tetrapod.machinery.gvk import Object

_INDEXES: Final = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4,"
    " Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
_ZONE: Final = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead,"
    " see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_HISTORY: Final = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


def _template(obj: Object, old: Object | None) -> list[str]:
    return [] if same_generation(obj, old) else template_warnings((obj.get("spec") or {}).get("template"), "spec.template")


def daemon_set(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a DaemonSet; on updates only if the template changed."""
    template, old_template = ((o.get("spec") or {}).get("template") for o in (obj, old or {}))
    return [] if old is not None and template == old_template else template_warnings(template, "spec.template")


def replicated(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a Deployment or ReplicaSet, whose name is part of pod names."""
    return name_warnings(obj, old) + _template(obj, old)


def stateful_set(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a StatefulSet."""
    spec = obj.get("spec") or {}
    warnings = _template(obj, old)
    suffix = "" if old is None else ".Spec"  # upstream's path on updates
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        warnings += claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}]{suffix}")
    return [*warnings, _HISTORY] if (spec.get("revisionHistoryLimit") or 0) < 0 else warnings


def job(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a Job."""
    if same_generation(obj, old):
        return []
    return name_warnings(obj, old) + _job_spec(obj.get("spec") or {}, "spec")


def cron_job(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a CronJob."""
    warnings = name_warnings(obj, old)
    spec = obj.get("spec") or {}
    if not same_generation(obj, old):
        warnings += _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    if old is not None and "TZ" in (spec.get("schedule") or ""):
        warnings.append(_ZONE)
    return warnings


def _job_spec(spec: Object, path: str) -> list[str]:
    is_large = (spec.get("completions") or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000
    warnings = [_INDEXES.replace("spec:", f"{path}:", 1)] if is_large and spec.get("completionMode") == "Indexed" else []
    return warnings + template_warnings(spec.get("template"), f"{path}.template")
