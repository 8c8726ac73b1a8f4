"""The order of API versions: v10, v2, v1, v11beta2, v3alpha1, then all others by name.

Discovery sorts the versions of a group in this order.

Upstream: k8s.io/apimachinery/pkg/version/helpers.go.
"""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import Final

from tetrapod.machinery.golang.integers import parse_int

_version = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", re.ASCII).fullmatch
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}


def parse_kube_version(text: str) -> tuple[int, int, int] | None:
    """Return (stage, major, minor) of a version such as `v1` or `v2beta3`, or None for other texts.

    The stage is 0 for alpha, 1 for beta and 2 for stable versions. The minor number is that after the stage, or 0.
    Numbers beyond int64 count as other texts.
    """
    match = _version(text)
    if match is None:
        return None
    try:
        return _STAGES[match[2]], parse_int(match[1]), parse_int(match[3] or "0")
    except ValueError:  # out of range
        return None


def compare(a: str, b: str) -> int:
    """Return a positive number if `a` is preferred to `b`, a negative one if `b` is preferred, and 0 if they are equal.

    Stable versions are preferred to beta, beta to alpha, alpha to other texts, and higher numbers to lower ones. Among
    other texts, the alphabetically first is preferred.

    Upstream: CompareKubeAwareVersionStrings.
    """
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
"""A sort key that puts the preferred version first."""
