"""The definition of ResourceQuotas and their status, with defaults, validation, warnings and table columns.

Upstream: pkg/apis/core/validation/validation.go, ValidateResourceQuota; pkg/registry/core/resourcequota/strategy.go;
pkg/printers/internalversion/printers.go, printResourceQuota.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.pod_resources import amounts, round_up
from tetrapod.core.validation import quantities
from tetrapod.core.validation.names import IMMUTABLE
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

SCOPES: Final = frozenset(
    {
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    }
)
_COMPUTE: Final = frozenset({"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_STORAGE: Final = frozenset({"persistentvolumeclaims", "requests.storage"})
_PAIRS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTS_ONLY: Final = SCOPES - {"PriorityClass", "VolumeAttributesClass"}
_MUST_EXIST: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def definition() -> ResourceDefinition:
    """Return the resource definition of resourcequotas: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        has_status=True,
        return_deleted_object=True,
        validator=validate,
        whole_update_validator=validate_update,
        warnings=warnings,
    )
    status = StatusStrategy(strategy, validate=validate_status)
    return builtin("", "resourcequotas", strategy, table=TABLE, subresources={"status": status})


def set_defaults(obj: Object) -> None:
    """Round the quantities in spec.hard, status.hard and status.used up to a thousandth, in place."""
    for part, fields in (("spec", ("hard",)), ("status", ("hard", "used"))):
        for name in fields:
            if quantities := (obj.get(part) or {}).get(name):
                round_up(quantities)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ResourceQuota.

    Names and amounts of resources in spec and status are valid. Scopes are known, apply to the limited resources, and
    do not contradict each other.
    """
    return _spec(obj.get("spec") or {}) + validate_status(obj, {})


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate the spec of an updated ResourceQuota as in a new one; its set of scopes is immutable."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _spec(spec)
    if set(spec.get("scopes") or ()) != set(old_spec.get("scopes") or ()):
        errors.append(field.invalid("spec.scopes", spec.get("scopes"), IMMUTABLE))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the resource names and quantities of status.hard and status.used; `old` is not used."""
    status = new.get("status") or {}
    return [error for part in ("hard", "used") for error in _amounts(status.get(part), f"status.{part}")]


def _amounts(listed: Object | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in (listed or {}).items():
        at = f"{path}[{name}]"
        errors += quantities.quota_resource_name(name, at) + quantities.amount(name, quantities.quantity(value), at)
    return errors


def _spec(spec: Object) -> list[FieldError]:
    errors = _amounts(spec.get("hard"), "spec.hard")
    counted = sorted(name for name in spec.get("hard") or () if quantities.is_standard_for_quota(name))
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in SCOPES:
            errors.append(field.invalid("spec.scopes", scopes, "unsupported scope"))
        text = "unsupported scope applied to resource"
        errors += [field.invalid("spec.scopes", scopes, text) for name in counted if not _applies(scope, name)]
    errors += _conflicts(set(scopes), spec, "spec.scopes")
    if (selector := spec.get("scopeSelector")) is not None:
        errors += _selector(selector, counted, spec)
    return errors


def _applies(scope: str, resource: str) -> bool:
    match scope:
        case "BestEffort":
            return resource == "pods"
        case "VolumeAttributesClass":
            return resource in _STORAGE
        case "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity":
            return resource in _COMPUTE
        case _:
            return True


def _conflicts(scopes: set[str], spec: Object, path: str) -> list[FieldError]:
    return [field.invalid(path, spec.get("scopes"), "conflicting scopes") for pair in _PAIRS if pair <= scopes]


def _selector(selector: Object, counted: list[str], spec: Object) -> list[FieldError]:
    path, expressions = "spec.scopeSelector.matchExpressions", selector.get("matchExpressions") or []
    shown = {"MatchExpressions": [_shown(e) for e in expressions]}
    errors: list[FieldError] = []
    for expression in expressions:
        scope, operator, values = (
            expression.get("scopeName") or "",
            expression.get("operator") or "",
            expression.get("values") or [],
        )
        if scope not in SCOPES:
            errors.append(field.invalid(f"{path}.scopeName", field.TypedText(scope), "unsupported scope"))
        text = "unsupported scope applied to resource"
        errors += [field.invalid(path, shown, text) for name in counted if not _applies(scope, name)]
        if scope in _EXISTS_ONLY and operator != "Exists":
            errors.append(field.invalid(f"{path}.operator", operator, _MUST_EXIST))
        errors += _operator(operator, values, path)
    return errors + _conflicts({e.get("scopeName") or "" for e in expressions}, spec, path)


def _shown(expression: Object) -> Object:
    return {
        "ScopeName": expression.get("scopeName") or "",
        "Operator": expression.get("operator") or "",
        "Values": expression.get("values") or None,
    }


def _operator(operator: str, values: list[str], path: str) -> list[FieldError]:
    if operator in ("In", "NotIn"):
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [field.required(f"{path}.values", text)]
    if operator in ("Exists", "DoesNotExist"):
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [field.invalid(f"{path}.values", values, text)] if values else []
    return [field.invalid(f"{path}.operator", field.TypedText(operator), "not a valid selector operator")]


def warnings(quota: Object, old: Object | None) -> list[str]:
    """Warn about a new quota whose requests of cpu, memory or ephemeral-storage exceed its limits.

    Updates give no warnings.

    Args:
        old: the stored object; None on create.
    """
    if old is not None:
        return []
    hard = amounts((quota.get("spec") or {}).get("hard"))
    out = []
    for name in ("cpu", "memory", "ephemeral-storage"):
        request, limit = hard.get(f"requests.{name}", hard.get(name)), hard.get(f"limits.{name}")
        if request is not None and limit is not None and request > limit:
            quota_name = f"requests.{name}" if f"requests.{name}" in hard else name
            out.append(f"ResourceQuota {quota_name} ({request}) should be less than limits.{name} ({limit})")
    return out


def _quota_row(obj: Object) -> list[Any]:
    status = status_of(obj)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        text = f"{name}: {used.get(name, '0')}/{hard[name]}"
        (limits if name.startswith("limits.") else requests).append(text)
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj)]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Request"),
        Column("Limit"),
        AGE,
    ),
    _quota_row,
)
