"""Which objects a quota is about: the scopes that it names."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def scopes_of(quota: Object) -> list[Object]:
    """As requirements, however the quota writes them."""
    spec = quota.get("spec") or {}
    wanted: list[Object] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return [*wanted, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ())]
