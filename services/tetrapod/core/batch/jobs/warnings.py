"""Warnings about Jobs. Upstream: pkg/api/job/warnings.go."""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.warnings import name_warnings, same_generation, template_warnings
from tetrapod.machinery.gvk import Object

_INDEXES: Final = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4,"
    " Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about the name and the spec of a Job; none if an update does not change the generation.

    Args:
        old: the stored object; None on create.
    """
    if same_generation(obj, old):
        return []
    return name_warnings(obj, old) + job_spec_warnings(obj.get("spec") or {}, "spec")


def job_spec_warnings(spec: Object, path: str) -> list[str]:
    """Return warnings about a Job spec: those about its pod template, and one about very many pods.

    The latter is for an indexed Job with more than 100000 completions and a parallelism of more than 10000.

    Args:
        path: the field path of the spec, which may be in the job template of a CronJob.
    """
    is_large = (spec.get("completions") or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000
    warnings = (
        [_INDEXES.replace("spec:", f"{path}:", 1)] if is_large and spec.get("completionMode") == "Indexed" else []
    )
    return warnings + template_warnings(spec.get("template"), f"{path}.template")
