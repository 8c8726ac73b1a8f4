"""Checks of kernel settings: procMount and sysctls.

Upstream: k8s.io/pod-security-admission/policy (check_procMount_baseline.go, check_procMount_restricted.go,
check_sysctls.go).
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podsecurity.check import (
    Check,
    CheckPod,
    Violation,
    containers,
    containers_named,
    in_user_namespace,
    names,
    quoted,
    security_option,
    unless,
)
from tetrapod.core.podsecurity.policy import BASELINE, RESTRICTED
from tetrapod.machinery.gvk import Object

_SYSCTLS: Final = {
    0: (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    37: ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),
}
"""The sysctls that each minor version added to the safe ones."""


def _proc_mount(metadata: Object, spec: Object) -> Violation | None:
    violating = [each for each in containers(spec) if security_option(each, "procMount") not in (None, "Default")]
    if not violating:
        return None
    types = sorted({security_option(each, "procMount") for each in violating})
    return Violation(
        "procMount", f"{containers_named(names(violating))} must not set securityContext.procMount to {quoted(types)}"
    )


def _sysctls(since: int) -> CheckPod:
    """Return the check that reports sysctls which were not safe in the minor version `since`."""
    safe = frozenset(name for version, added in _SYSCTLS.items() if version <= since for name in added)

    def check(metadata: Object, spec: Object) -> Violation | None:
        violating = [name for name in names(security_option(spec, "sysctls") or ()) if name not in safe]
        return Violation("forbidden sysctls", ", ".join(violating)) if violating else None

    return check


CHECKS: Final = (
    Check("procMount", BASELINE, {0: _proc_mount, 35: unless(in_user_namespace, _proc_mount)}),
    Check("procMount_restricted", RESTRICTED, {35: _proc_mount}, overrides="procMount"),
    Check("sysctls", BASELINE, {since: _sysctls(since) for since in _SYSCTLS}),
)
