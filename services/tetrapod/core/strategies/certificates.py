"""CertificateSigningRequest (upstream: pkg/registry/certificates/certificates/strategy.go): who asks is the server's to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.core.strategies import certificate_metrics
from tetrapod.core.validation import signing_requests
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

_DECISIONS: Final = frozenset({"Approved", "Denied"})


class SigningRequestStrategy(Strategy):
    has_status = True
    initial_status: Mapping[str, Any] = {}
    field_labels = ("spec.signerName",)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["username"] = ctx.user.name
        for key, value in (
            ("uid", ctx.user.uid),
            ("groups", list(ctx.user.groups)),
            ("extra", {k: list(v) for k, v in ctx.user.extra.items()}),
        ):
            spec.pop(key, None)
            if value:
                spec[key] = value

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return []

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return signing_requests.validate(obj)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["spec"] = old.get("spec", {})

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return signing_requests.validate_update(new, old)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"spec.signerName": (obj.get("spec") or {}).get("signerName") or ""}

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("status",)]


class _ConditionsStrategy(Strategy):
    def __init__(self, main: SigningRequestStrategy) -> None:
        self.namespaced = main.namespaced
        self._main = main

    field_labels = ("spec.signerName",)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return []


def _stamp(new: Object, old: Object) -> None:
    """Times of conditions: those that are new or changed get one."""
    before = {c.get("type"): c for c in (old.get("status") or {}).get("conditions") or ()}
    for condition in (new.get("status") or {}).get("conditions") or ():
        was = before.get(condition.get("type"))
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now_rfc3339()
        if not condition.get("lastTransitionTime"):
            same = was is not None and was.get("status") == condition.get("status")
            condition["lastTransitionTime"] = (was or {}).get("lastTransitionTime") if same else now_rfc3339()


class ApprovalStrategy(_ConditionsStrategy):
    """`/approval`: Approved and Denied conditions, nothing else."""

    tabular = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        _stamp(new, old)
        conditions = (new.get("status") or {}).get("conditions")
        new["spec"] = old.get("spec", {})
        status = {k: v for k, v in (old.get("status") or {}).items() if k != "conditions"}
        if conditions:
            status["conditions"] = conditions
        new["status"] = status

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("status", "certificate")]

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return signing_requests.validate_update(new, old, decides=True)


class SigningStatusStrategy(_ConditionsStrategy):
    """`/status`: the certificate and other conditions; decisions stay."""

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["spec"] = old.get("spec", {})
        _stamp(new, old)
        given = new.setdefault("status", {}).get("conditions") or []
        for kind in _DECISIONS:
            kept = [c for c in (old.get("status") or {}).get("conditions") or () if c.get("type") == kind]
            places = [i for i, c in enumerate(given) if c.get("type") == kind]
            if len(kept) == len(places):  # added or removed ones are refused later
                for place, condition in zip(places, kept, strict=True):
                    given[place] = condition

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("status", "conditions")]

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return signing_requests.validate_update(new, old, signs=True)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        return new if certificate_metrics.counts(new, old) and not ctx.dry_run else None

    async def end_update(self, ctx: Context, taken: Any, succeeded: bool) -> None:
        if taken is not None and succeeded:
            certificate_metrics.issued(taken)
