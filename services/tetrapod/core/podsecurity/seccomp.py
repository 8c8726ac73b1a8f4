"""Checks of the seccomp profile: in annotations up to version 1.18, in fields from 1.19 on.

Upstream: k8s.io/pod-security-admission/policy (check_seccompProfile_baseline.go, check_seccompProfile_restricted.go).
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podsecurity.check import (
    Check,
    Violation,
    containers,
    containers_named,
    is_windows,
    names,
    plural,
    quoted,
    security_option,
    setters,
    unless,
)
from tetrapod.core.podsecurity.policy import BASELINE, RESTRICTED
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

POD_ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_ANNOTATION: Final = "container.seccomp.security.alpha.kubernetes.io/"
_VALID: Final = frozenset({"RuntimeDefault", "Localhost"})
_REASON: Final = "seccompProfile"


def _annotations(metadata: Object, spec: Object) -> Violation | None:
    annotations: dict[str, str] = metadata.get("annotations") or {}
    keys = {POD_ANNOTATION, *(CONTAINER_ANNOTATION + name for name in names(containers(spec)))}
    violating = sorted(
        f"{key}={go_quote(annotations[key])}" for key in keys & annotations.keys() if not _is_valid(annotations[key])
    )
    return (
        Violation(_REASON, f"forbidden {plural(violating, 'annotation')} {', '.join(violating)}") if violating else None
    )


def _is_valid(annotation: str) -> bool:
    return annotation in ("runtime/default", "docker/default") or annotation.startswith("localhost/")


def _fields(metadata: Object, spec: Object) -> Violation | None:
    violating = [each for each in containers(spec) if _is_bad(each)]
    subject = setters(_is_bad(spec), names(violating))
    if not subject:
        return None
    types = sorted({_type(owner) for owner in (spec, *violating) if _is_bad(owner)})
    return Violation(_REASON, f"{subject} must not set securityContext.seccompProfile.type to {quoted(types)}")


def _is_bad(owner: Object) -> bool:
    profile = security_option(owner, "seccompProfile")
    return profile is not None and profile.get("type") not in _VALID


def _type(owner: Object) -> str:
    kind: str = security_option(owner, "seccompProfile").get("type", "")
    return kind


def _required(metadata: Object, spec: Object) -> Violation | None:
    if violation := _fields(metadata, spec):
        return violation
    if security_option(spec, "seccompProfile") is not None:
        return None
    violating = names(each for each in containers(spec) if security_option(each, "seccompProfile") is None)
    if not violating:
        return None
    requirement = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation(_REASON, f"pod or {containers_named(violating)} {requirement}")


CHECKS: Final = (
    Check("seccompProfile_baseline", BASELINE, {0: _annotations, 19: _fields}),
    Check(
        "seccompProfile_restricted",
        RESTRICTED,
        {19: _required, 25: unless(is_windows, _required)},
        overrides="seccompProfile_baseline",
    ),
)
