"""Merging and comparison of tolerations. Upstream: pkg/util/tolerations."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def merged(first: list[Object], second: list[Object]) -> list[Object]:
    """Return the tolerations of both lists in a new list, in order, without redundant ones.

    A toleration is redundant if another one covers it: the other tolerates the same taints for at least as long. Of
    equal tolerations, the first is kept.
    """
    tolerations, kept = [*first, *second], list[Object]()
    for i, toleration in enumerate(tolerations):
        covered = any(_covers(other, toleration) for other in kept)
        if not covered and not any(
            other != toleration and _covers(other, toleration) for other in tolerations[i + 1 :]
        ):
            kept.append(toleration)
    return kept


def _covers(wide: Object, narrow: Object) -> bool:
    """Return whether `wide` tolerates every taint that `narrow` tolerates, for at least as long."""
    if wide == narrow:
        return True
    key, operator = wide.get("key") or "", wide.get("operator") or ""
    if (narrow.get("key") or "") != key and (key or operator != "Exists"):
        return False
    effect = wide.get("effect") or ""
    if effect and (narrow.get("effect") or "") != effect:
        return False
    seconds, own_seconds = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None and (own_seconds is None or own_seconds > seconds):
        return False
    if operator in ("", "Equal"):
        return narrow.get("operator") == "Equal" and (narrow.get("value") or "") == (wide.get("value") or "")
    return operator == "Exists"


def all_covered(tolerations: list[Object], allowed: list[Object]) -> bool:
    """Return whether each toleration is covered by one in `allowed`, which tolerates at least the same taints."""
    return all(any(_covers(wide, toleration) for wide in allowed) for toleration in tolerations)
