"""The rules by which coordinated leader election picks the strategy and the leader among LeaseCandidates.

Upstream: pkg/controlplane/controller/leaderelection/election.go
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Final

from tetrapod.machinery.cel.library import versions
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import parse

_ZERO: Final = versions.Semver((0, 0, 0), ())


def best_leader(candidates: Sequence[Object]) -> Object | None:
    """Return the candidate with the oldest emulation version, then binary version, that was created first.

    Candidates with an invalid version are ignored. None means that no candidate is left.
    """
    valid = [candidate for candidate in candidates if _version(candidate, "emulationVersion") is not None]
    valid = [candidate for candidate in valid if _version(candidate, "binaryVersion") is not None]
    return min(valid, key=cmp_to_key(_compare)) if valid else None


def best_strategy(candidates: Sequence[Object]) -> str:
    """Return the strategy of the candidates with the latest binary version. There must be a candidate.

    Raises:
        ValueError: candidates of the same binary version have different strategies; the text is upstream's.
    """
    best = candidates[0]
    for candidate in candidates[1:]:
        order = versions.compare(
            _version(best, "binaryVersion") or _ZERO, _version(candidate, "binaryVersion") or _ZERO
        )
        if order < 0:
            best = candidate
        elif order == 0 and _strategy(candidate) != _strategy(best):
            names = f'"{best["metadata"]["name"]}", "{candidate["metadata"]["name"]}"'
            raise ValueError(
                f"candidates {names} at same binary version but received differing strategies "
                f"{_strategy(best)}, {_strategy(candidate)}"
            )
    return _strategy(best)


def _strategy(candidate: Object) -> str:
    strategy: str = candidate["spec"].get("strategy") or ""
    return strategy


def _version(candidate: Object, name: str) -> versions.Semver | None:
    """Return a version of a candidate, or None if it is missing or invalid. `name` is its field of spec."""
    try:
        return versions.parse(candidate["spec"].get(name) or "")
    except ValueError:
        return None


def _compare(a: Object, b: Object) -> int:
    for name in ("emulationVersion", "binaryVersion"):
        if order := versions.compare(_version(a, name) or _ZERO, _version(b, name) or _ZERO):
            return order
    return -1 if parse(a["metadata"]["creationTimestamp"]) < parse(b["metadata"]["creationTimestamp"]) else 0
