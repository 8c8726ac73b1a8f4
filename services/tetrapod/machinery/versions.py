"""The order of API versions: v10, v2, v1, v11beta2, v3alpha1, then all others by name.

Discovery sorts a group's versions with it (upstream: k8s.io/apimachinery/pkg/version/helpers.go).
"""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import Final

from tetrapod.machinery.gointeger import parse_int

_version = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", re.ASCII).fullmatch
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}


def parse_kube_version(text: str) -> tuple[int, int, int] | None:
    """(stage, major, minor) of `v1`, `v2beta3`; None for what is no such version."""
    found = _version(text)
    if found is None:
        return None
    try:
        return _STAGES[found[2]], parse_int(found[1]), parse_int(found[3] or "0")
    except ValueError:  # out of range
        return None


def compare(a: str, b: str) -> int:
    """Positive where `a` is the more stable or newer version (upstream: CompareKubeAwareVersionStrings)."""
    if a == b:
        return 0
    left, right = parse_kube_version(a), parse_kube_version(b)
    if left and right:
        return (left > right) - (left < right)
    if left or right:
        return 1 if left else -1
    return 1 if a < b else -1


def _by_priority(a: str, b: str) -> int:
    return compare(b, a)


priority_key = cmp_to_key(_by_priority)
"""Sort key that puts the preferred version first."""
