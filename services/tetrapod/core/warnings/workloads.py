"""Warnings about what holds a pod template (upstream: the WarningsOnCreate and -OnUpdate of pkg/registry/{apps,batch}).

Each function is a `KindStrategy`'s `warnings`: of the new object, and the old one where there is one. Updates that begin no new
generation are not looked at.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.warnings.pods import template_warnings
from tetrapod.core.warnings.volumes import claim_spec_warnings
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
    texts = [] if old is not None else is_dns1123_label(obj["metadata"].get("name") or "")
    return [f"{_NAME}[{' '.join(texts)}]"] if texts else []


def _same_generation(obj: Object, old: Object | None) -> bool:
    return old is not None and old["metadata"].get("generation") == obj["metadata"].get("generation")


def _template(obj: Object, old: Object | None) -> list[str]:
    return [] if _same_generation(obj, old) else template_warnings((obj.get("spec") or {}).get("template"), "spec.template")


def pod_template(obj: Object, old: Object | None) -> list[str]:
    return [] if _same_generation(obj, old) else template_warnings(obj.get("template"), "template")


def daemon_set(obj: Object, old: Object | None) -> list[str]:
    """Only a change of the template begins what counts here as a generation."""
    template, before = ((o.get("spec") or {}).get("template") for o in (obj, old or {}))
    return [] if old is not None and template == before else template_warnings(template, "spec.template")


def replicated(obj: Object, old: Object | None) -> list[str]:
    """Deployment and ReplicaSet, after which pods are named."""
    return _name(obj, old) + _template(obj, old)


def replication_controller(obj: Object, old: Object | None) -> list[str]:
    """Upstream looks at the old template at an update."""
    if _same_generation(obj, old):
        return []
    return _name(obj, old) + template_warnings(((old or obj).get("spec") or {}).get("template"), "spec.template")


def stateful_set(obj: Object, old: Object | None) -> list[str]:
    spec = obj.get("spec") or {}
    found = _template(obj, old)
    inner = "" if old is None else ".Spec"  # so upstream writes it, at updates only
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        found += claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}]{inner}")
    return [*found, _HISTORY] if (spec.get("revisionHistoryLimit") or 0) < 0 else found


def job(obj: Object, old: Object | None) -> list[str]:
    if _same_generation(obj, old):
        return []
    return _name(obj, old) + _job_spec(obj.get("spec") or {}, "spec")


def cron_job(obj: Object, old: Object | None) -> list[str]:
    found = _name(obj, old)
    spec = obj.get("spec") or {}
    if not _same_generation(obj, old):
        found += _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    if old is not None and "TZ" in (spec.get("schedule") or ""):
        found.append(_ZONE)
    return found


def _job_spec(spec: Object, path: str) -> list[str]:
    many = (spec.get("completions") or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000
    found = [_INDEXES.replace("spec:", f"{path}:", 1)] if many and spec.get("completionMode") == "Indexed" else []
    return found + template_warnings(spec.get("template"), f"{path}.template")
