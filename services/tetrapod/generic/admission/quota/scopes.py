"""The scopes of a quota, which select the objects that it limits."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def scopes_of(quota: Object) -> list[Object]:
    """Return the scopes as scope selector requirements, in whichever field the quota has them."""
    spec = quota.get("spec") or {}
    requirements: list[Object] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return [*requirements, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ())]
