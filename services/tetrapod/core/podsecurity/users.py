"""Checks that a pod does not run as root. Since version 1.35, pods with their own user namespace may.

Upstream: k8s.io/pod-security-admission/policy (check_runAsNonRoot.go, check_runAsUser.go).
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podsecurity.check import (
    Check,
    Violation,
    containers,
    containers_named,
    in_user_namespace,
    names,
    security_option,
    setters,
    unless,
)
from tetrapod.core.podsecurity.policy import RESTRICTED
from tetrapod.machinery.gvk import Object


def _non_root(metadata: Object, spec: Object) -> Violation | None:
    reason, pod_value = "runAsNonRoot != true", security_option(spec, "runAsNonRoot")
    explicit = names(each for each in containers(spec) if security_option(each, "runAsNonRoot") is False)
    if subject := setters(pod_value is False, explicit):
        return Violation(reason, f"{subject} must not set securityContext.runAsNonRoot=false")
    implicit = (
        [] if pod_value else names(each for each in containers(spec) if security_option(each, "runAsNonRoot") is None)
    )
    return (
        Violation(reason, f"pod or {containers_named(implicit)} must set securityContext.runAsNonRoot=true")
        if implicit
        else None
    )


def _user(metadata: Object, spec: Object) -> Violation | None:
    subject = setters(_is_root(spec), names(filter(_is_root, containers(spec))))
    return Violation("runAsUser=0", f"{subject} must not set runAsUser=0") if subject else None


def _is_root(owner: Object) -> bool:
    return bool(security_option(owner, "runAsUser") == 0)


CHECKS: Final = (
    Check("runAsNonRoot", RESTRICTED, {0: _non_root, 35: unless(in_user_namespace, _non_root)}),
    Check("runAsUser", RESTRICTED, {23: _user, 35: unless(in_user_namespace, _user)}),
)
