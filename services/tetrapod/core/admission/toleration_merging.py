"""Tolerations of a pod and of what is added to it (upstream: pkg/util/tolerations)."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def merged(first: list[Object], second: list[Object]) -> list[Object]:
    """Both, without those that another one covers; of equal ones the first stays."""
    everything, kept = [*first, *second], list[Object]()
    for i, one in enumerate(everything):
        covered = any(_covers(other, one) for other in kept)
        if not covered and not any(other != one and _covers(other, one) for other in everything[i + 1 :]):
            kept.append(one)
    return kept


def _covers(wide: Object, one: Object) -> bool:
    if wide == one:
        return True
    key, operator = wide.get("key") or "", wide.get("operator") or ""
    if (one.get("key") or "") != key and (key or operator != "Exists"):
        return False
    effect = wide.get("effect") or ""
    if effect and (one.get("effect") or "") != effect:
        return False
    seconds, own = wide.get("tolerationSeconds"), one.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None and (own is None or own > seconds):
        return False
    if operator in ("", "Equal"):
        return one.get("operator") == "Equal" and (one.get("value") or "") == (wide.get("value") or "")
    return operator == "Exists"


def all_covered(tolerations: list[Object], allowed: list[Object]) -> bool:
    """Whether each is within one of those that are allowed (upstream: VerifyAgainstWhitelist)."""
    return all(any(_covers(wide, one) for wide in allowed) for one in tolerations)
