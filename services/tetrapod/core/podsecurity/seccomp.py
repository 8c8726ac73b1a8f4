"""Checks of the seccomp profile: by annotations up to policy 1.18, by the fields since.

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
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object

POD_ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_ANNOTATION: Final = "container.seccomp.security.alpha.kubernetes.io/"
_VALID: Final = frozenset({"RuntimeDefault", "Localhost"})
_REASON: Final = "seccompProfile"


def _annotations(metadata: Object, spec: Object) -> Violation | None:
    found: dict[str, str] = metadata.get("annotations") or {}
    keys = {POD_ANNOTATION, *(CONTAINER_ANNOTATION + name for name in names(containers(spec)))}
    bad = sorted(f"{key}={go_quote(found[key])}" for key in keys & found.keys() if not _is_valid(found[key]))
    return Violation(_REASON, f"forbidden {plural(bad, 'annotation')} {', '.join(bad)}") if bad else None


def _is_valid(annotation: str) -> bool:
    return annotation in ("runtime/default", "docker/default") or annotation.startswith("localhost/")


def _fields(metadata: Object, spec: Object) -> Violation | None:
    bad = [each for each in containers(spec) if _is_bad(each)]
    who = setters(_is_bad(spec), names(bad))
    if not who:
        return None
    types = sorted({_type(owner) for owner in (spec, *bad) if _is_bad(owner)})
    return Violation(_REASON, f"{who} must not set securityContext.seccompProfile.type to {quoted(types)}")


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
    bad = names(each for each in containers(spec) if security_option(each, "seccompProfile") is None)
    if not bad:
        return None
    wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation(_REASON, f"pod or {containers_named(bad)} {wanted}")


CHECKS: Final = (
    Check("seccompProfile_baseline", BASELINE, {0: _annotations, 19: _fields}),
    Check(
        "seccompProfile_restricted",
        RESTRICTED,
        {19: _required, 25: unless(is_windows, _required)},
        overrides="seccompProfile_baseline",
    ),
)
