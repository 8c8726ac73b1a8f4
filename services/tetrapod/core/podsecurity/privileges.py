"""Checks of container privileges: privileged mode, capabilities, privilege escalation.

Upstream: k8s.io/pod-security-admission/policy (check_privileged.go, check_capabilities_baseline.go,
check_capabilities_restricted.go, check_allowPrivilegeEscalation.go).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tetrapod.core.podsecurity.check import (
    Check,
    Violation,
    containers,
    containers_named,
    is_windows,
    names,
    quoted,
    security_option,
    unless,
)
from tetrapod.core.podsecurity.policy import BASELINE, RESTRICTED
from tetrapod.machinery.gvk import Object

_DEFAULT_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)


def _privileged(metadata: Object, spec: Object) -> Violation | None:
    violating = names(each for each in containers(spec) if security_option(each, "privileged"))
    return (
        Violation("privileged", f"{containers_named(violating)} must not set securityContext.privileged=true")
        if violating
        else None
    )


def _escalation(metadata: Object, spec: Object) -> Violation | None:
    violating = names(
        each for each in containers(spec) if security_option(each, "allowPrivilegeEscalation") is not False
    )
    if not violating:
        return None
    return Violation(
        "allowPrivilegeEscalation != false",
        f"{containers_named(violating)} must set securityContext.allowPrivilegeEscalation=false",
    )


def _capabilities_baseline(metadata: Object, spec: Object) -> Violation | None:
    added = _forbidden_additions(spec, _DEFAULT_CAPABILITIES)
    return Violation("non-default capabilities", added) if added else None


def _capabilities_restricted(metadata: Object, spec: Object) -> Violation | None:
    details = []
    if keeping := names(each for each in containers(spec) if "ALL" not in _capabilities(each, "drop")):
        details.append(f'{containers_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if added := _forbidden_additions(spec, {"NET_BIND_SERVICE"}):
        details.append(added)
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _forbidden_additions(spec: Object, allowed: Collection[str]) -> str:
    """Return a text about the containers that add capabilities other than `allowed`, or "" if no container does."""
    violating: list[str] = []
    forbidden: set[str] = set()
    for container in containers(spec):
        if extra := {name for name in _capabilities(container, "add") if name not in allowed}:
            violating.append(container.get("name", ""))
            forbidden |= extra
    return (
        f"{containers_named(violating)} must not include {quoted(sorted(forbidden))} in "
        "securityContext.capabilities.add"
        if violating
        else ""
    )


def _capabilities(container: Object, how: str) -> Collection[str]:
    """Return the capabilities that the container adds (`how` is "add") or drops ("drop")."""
    return (security_option(container, "capabilities") or {}).get(how) or ()


CHECKS: Final = (
    Check("privileged", BASELINE, {0: _privileged}),
    Check("capabilities_baseline", BASELINE, {0: _capabilities_baseline}),
    Check("allowPrivilegeEscalation", RESTRICTED, {8: _escalation, 25: unless(is_windows, _escalation)}),
    Check(
        "capabilities_restricted",
        RESTRICTED,
        {22: _capabilities_restricted, 25: unless(is_windows, _capabilities_restricted)},
        overrides="capabilities_baseline",
    ),
)
