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
