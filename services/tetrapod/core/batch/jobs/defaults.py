"""Defaults of Jobs. Upstream: pkg/apis/batch/v1/defaults.go."""

from __future__ import annotations

from tetrapod.core.podspec.defaults import default_pod_template, set_missing
from tetrapod.machinery.gvk import Object


def set_spec_defaults(spec: Object) -> None:
    """Set the defaults that the spec of a Job and the job template of a CronJob share, in place.

    They are those of the pod template, and the status "True" of conditions in podFailurePolicy.
    """
    default_pod_template(spec.get("template"))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def set_defaults(obj: Object) -> None:
    """Set the defaults of a Job in place.

    - completions is 1 if parallelism is unset too, and parallelism is 1.
    - backoffLimit is 6, or the largest int32 with backoffLimitPerIndex.
    - Labels are those of the pod template, if the Job has none.
    - completionMode is NonIndexed; suspend and manualSelector are false.
    - podReplacementPolicy is Failed with podFailurePolicy, else TerminatingOrFailed.
    """
    spec = obj.setdefault("spec", {})
    set_spec_defaults(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    set_missing(spec, parallelism=1)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 2147483647 if spec.get("backoffLimitPerIndex") is not None else 6
    if (
        (template := spec.get("template"))
        and not obj["metadata"].get("labels")
        and (labels := (template.get("metadata") or {}).get("labels"))
    ):
        obj["metadata"]["labels"] = dict(labels)
    set_missing(spec, completionMode="NonIndexed", suspend=False, manualSelector=False)
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
