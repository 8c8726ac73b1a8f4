"""Warnings about kinds with a pod template.

Each function is the `warnings` of a `KindStrategy`: it gets the new object and, on updates, the old one. Updates that do not change the
generation get no template warnings.
Upstream: pkg/registry/{apps,batch}, WarningsOnCreate and WarningsOnUpdate.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.claim_spec import claim_spec_warnings
from tetrapod.core.podspec.warnings import template_warnings
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_label

_NAME: Final = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: "
)
_INDEXES: Final = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4,"
    " Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
_ZONE: Final = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead,"
    " see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_HISTORY: Final = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


def _name(obj: Object, old: Object | None) -> list[str]:
    """Return a warning about the name of a new object if it is not a DNS label."""
    texts = [] if old is not None else is_dns1123_label(obj["metadata"].get("name") or "")
    return [f"{_NAME}[{' '.join(texts)}]"] if texts else []


def _same_generation(obj: Object, old: Object | None) -> bool:
    return old is not None and old["metadata"].get("generation") == obj["metadata"].get("generation")


def _template(obj: Object, old: Object | None) -> list[str]:
    return [] if _same_generation(obj, old) else template_warnings((obj.get("spec") or {}).get("template"), "spec.template")


def pod_template(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a PodTemplate."""
    return [] if _same_generation(obj, old) else template_warnings(obj.get("template"), "template")


def daemon_set(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a DaemonSet; on updates only if the template changed."""
    template, old_template = ((o.get("spec") or {}).get("template") for o in (obj, old or {}))
    return [] if old is not None and template == old_template else template_warnings(template, "spec.template")


def replicated(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a Deployment or ReplicaSet, whose name is part of pod names."""
    return _name(obj, old) + _template(obj, old)


def replication_controller(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a ReplicationController. As upstream, an update warns about the old template."""
    if _same_generation(obj, old):
        return []
    return _name(obj, old) + template_warnings(((old or obj).get("spec") or {}).get("template"), "spec.template")


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
    if _same_generation(obj, old):
        return []
    return _name(obj, old) + _job_spec(obj.get("spec") or {}, "spec")


def cron_job(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a CronJob."""
    warnings = _name(obj, old)
    spec = obj.get("spec") or {}
    if not _same_generation(obj, old):
        warnings += _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    if old is not None and "TZ" in (spec.get("schedule") or ""):
        warnings.append(_ZONE)
    return warnings


def _job_spec(spec: Object, path: str) -> list[str]:
    is_large = (spec.get("completions") or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000
    warnings = [_INDEXES.replace("spec:", f"{path}:", 1)] if is_large and spec.get("completionMode") == "Indexed" else []
    return warnings + template_warnings(spec.get("template"), f"{path}.template")
