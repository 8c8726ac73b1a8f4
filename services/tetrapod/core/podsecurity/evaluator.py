"""Evaluation of a pod against the checks of a level and a version of the Pod Security Standards.

"latest" and future versions mean the newest version that a check has. Follows
k8s.io/pod-security-admission/policy/registry.go and checks.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.core.podsecurity import host, kernel, privileges, profiles, seccomp, users, volumes
from tetrapod.core.podsecurity.check import Check, CheckPod, Violation
from tetrapod.core.podsecurity.policy import BASELINE, PRIVILEGED, RESTRICTED, LevelVersion
from tetrapod.machinery.gvk import Object

CHECKS: Final[tuple[Check, ...]] = tuple(
    sorted(
        (check for module in (host, kernel, privileges, profiles, seccomp, users, volumes) for check in module.CHECKS),
        key=lambda check: (check.level, check.id),  # "baseline" sorts before "restricted" and must be reported first
    )
)
NEWEST: Final = max(since for check in CHECKS for since in check.revisions)


def _in_force(level: str, minor: int) -> tuple[CheckPod, ...]:
    """Return the checks that apply at a level and a minor version of Kubernetes.

    The restricted level includes baseline checks, except those that a restricted check overrides.

    Args:
        level: "baseline" or "restricted".
        minor: the minor version, such as 30 for 1.30.
    """
    current = {
        check.id: check for check in CHECKS if check.level in (BASELINE, level) and min(check.revisions) <= minor
    }
    overridden = {check.overrides for check in current.values()}
    return tuple(
        check.revisions[max(since for since in check.revisions if since <= minor)]
        for name, check in current.items()
        if name not in overridden
    )


_TABLE: Final = {
    level: tuple(_in_force(level, minor) for minor in range(NEWEST + 1)) for level in (BASELINE, RESTRICTED)
}


def evaluate(standard: LevelVersion, metadata: Object, spec: Object) -> list[Violation]:
    """Return the violations of a pod or pod template, in the order in which messages list them; [] if it conforms.

    Args:
        standard: the level and version. "latest" and future versions mean the newest version that is implemented.
        metadata: the metadata of the pod or template.
        spec: its pod spec.
    """
    if standard.level == PRIVILEGED:
        return []
    minor = standard.minor
    checks = _TABLE[standard.level][NEWEST if minor is None else min(minor, NEWEST)]
    return [violation for check in checks if (violation := check(metadata, spec)) is not None]


def details(violations: Sequence[Violation]) -> str:
    """Return the violations as one text, separated by commas: `reason (detail), reason (detail)`."""
    return ", ".join(map(str, violations))


def reasons(violations: Sequence[Violation]) -> str:
    """Return the reasons of the violations as one text, separated by commas, without details."""
    return ", ".join(violation.reason for violation in violations)
