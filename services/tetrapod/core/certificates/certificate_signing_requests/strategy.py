"""Strategies of CertificateSigningRequest, its status and its approval.

The server sets the fields that describe the requester.

Upstream: pkg/registry/certificates/certificates/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.core.certificates.certificate_signing_requests import metrics as certificate_metrics
from tetrapod.core.certificates.certificate_signing_requests import validation as signing_requests
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hand_written import HandWritten, Text
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

_DECISIONS: Final = frozenset({"Approved", "Denied"})


def _second_decision(error: FieldError, obj: Object) -> Any:
    kinds = [condition.get("type") for condition in obj["status"]["conditions"]]
    return max(_DECISIONS, key=kinds.index)


_FORM: Final = HandWritten(
    texts={
        "FieldValueInvalid status.conditions": Text(
            "Approved and Denied conditions are mutually exclusive", value=_second_decision
        )
    }
)


class SigningRequestStrategy(Strategy):
    """The strategy of CertificateSigningRequest.

    Create overwrites username, uid, groups and extra of the spec with those of the authenticated user. Updates ignore
    changes of the spec.
    """

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
    """The base of the strategies of `/approval` and `/status`, which may change conditions.

    Args:
        main: the strategy of the requests themselves.
    """

    hand_written = _FORM

    def __init__(self, main: SigningRequestStrategy) -> None:
        self.namespaced = main.namespaced

    field_labels = ("spec.signerName",)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return []


def _stamp(new: Object, old: Object) -> None:
    """Set missing lastUpdateTime and lastTransitionTime of the new conditions to the current time, in place.

    If the status of a condition has not changed, the stored lastTransitionTime is used instead.
    """
    existing_by_type = {c.get("type"): c for c in (old.get("status") or {}).get("conditions") or ()}
    for condition in (new.get("status") or {}).get("conditions") or ():
        existing = existing_by_type.get(condition.get("type"))
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now_rfc3339()
        if not condition.get("lastTransitionTime"):
            unchanged = existing is not None and existing.get("status") == condition.get("status")
            condition["lastTransitionTime"] = (existing or {}).get("lastTransitionTime") if unchanged else now_rfc3339()


class ApprovalStrategy(_ConditionsStrategy):
    """The strategy of `certificatesigningrequests/approval`. Changes of anything but conditions are ignored."""

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
    """The strategy of `certificatesigningrequests/status`.

    It may set the certificate and conditions. Changed conditions Approved and Denied are replaced by the stored ones;
    added or removed ones are rejected by validation.
    """

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["spec"] = old.get("spec", {})
        _stamp(new, old)
        conditions = new.setdefault("status", {}).get("conditions") or []
        for decision in _DECISIONS:
            existing = [c for c in (old.get("status") or {}).get("conditions") or () if c.get("type") == decision]
            indexes = [i for i, c in enumerate(conditions) if c.get("type") == decision]
            if len(existing) == len(indexes):  # an added or removed decision is rejected by validation
                for index, condition in zip(indexes, existing, strict=True):
                    conditions[index] = condition

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("status", "conditions")]

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return signing_requests.validate_update(new, old, signs=True)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        return new if certificate_metrics.newly_issued(new, old) and not ctx.dry_run else None

    async def end_update(self, ctx: Context, taken: Any, succeeded: bool) -> None:
        if taken is not None and succeeded:
            certificate_metrics.count_issued(taken)
