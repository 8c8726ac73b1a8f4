"""The definition of PriorityLevelConfigurations, with their defaults, validation and table columns.

Upstream: pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go and pkg/apis/flowcontrol/validation.
"""

from __future__ import annotations

from math import log2
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of
from tetrapod.core.flowcontrol import flow_schemas
from tetrapod.core.flowcontrol.flow_schemas import _mandatory
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import known
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import GATE, HandWritten, Text
from tetrapod.generic.registry.status import WHOLE_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_MOST_QUEUES: Final = 10_000_000
_ENTROPY: Final = 60


_KINDS: Final = frozenset({"Exempt", "Limited"})
_FORM: Final = HandWritten(
    "spec.exempt",
    "spec.limited.nominalConcurrencyShares",
    "spec.limited.limitResponse",
    "spec.limited",
    "spec!",
    texts={
        "FieldValueForbidden spec.limited": Text("must be nil if the type is not Limited", former=""),
        "FieldValueForbidden spec.exempt": Text("must be nil if the type is Limited", former=""),
        "FieldValueRequired spec.limited": Text("must not be empty when type is Limited", former=""),
        "FieldValueForbidden spec.limited.limitResponse.queuing": Text(
            "must be nil if limited.limitResponse.type is not Limited", former=""
        ),
        "FieldValueRequired spec.limited.limitResponse.queuing": Text(
            "must not be empty if limited.limitResponse.type is Limited", former=""
        ),
    },
)


def definition() -> ResourceDefinition:
    """Return the resource definition of PriorityLevelConfigurations: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        hand_written=_FORM,
        defaults=set_defaults,
        validator=validate,
        has_status=True,
        generation=("spec",),
        revalidates_generate_name="before finalizers",
    )
    status = StatusStrategy(strategy, keep_metadata=WHOLE_METADATA, validate=flow_schemas.validate_status)
    return builtin(
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        strategy,
        table=TABLE,
        subresources={"status": status},
    )


def set_defaults(obj: Object) -> None:
    """Set the defaults of a PriorityLevelConfiguration, which is modified.

    An exempt one gets 0 shares, a limited one 30; lendablePercent is 0. Queuing gets 64 queues of 50 requests and a
    hand size of 8.
    """
    spec = obj.setdefault("spec", {})
    if (exempt := spec.get("exempt")) is not None:
        for key in ("nominalConcurrencyShares", "lendablePercent"):
            if exempt.get(key) is None:
                exempt[key] = 0
    if (limited := spec.get("limited")) is not None:
        for key, value in (("nominalConcurrencyShares", 30), ("lendablePercent", 0)):
            if limited.get(key) is None:
                limited[key] = value
        response = limited.get("limitResponse")
        if response and (queuing := response.get("queuing")) is not None:
            for key, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(key):
                    queuing[key] = value


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated PriorityLevelConfiguration. The mandatory ones must have upstream's spec.

    Only `exempt` has the type Exempt. Shares, percentages and the parameters of queuing are in range.
    """
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name") or ""
    kind, exempt, limited = spec.get("type") or "", spec.get("exempt"), spec.get("limited")
    errors: list[FieldError] = []
    if (name == "exempt") != (kind == "Exempt"):
        errors.append(field.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt" and exempt is not None:
        errors += _shares(exempt, "spec.exempt") + _percents(exempt, "spec.exempt")
    elif kind == "Limited" and limited is not None:
        errors += _limited(limited)
    elif kind:
        errors += known(kind, _KINDS, "spec.type")
    errors += _fixed_level(name, spec)
    return errors + _declared(spec)


def _fixed_level(name: str, spec: Object) -> list[FieldError]:
    """Reject a spec that differs from that of the mandatory priority level with this name.

    Only `exempt` may change a part, its spec.exempt. Other names are accepted.
    """
    if (fixed := _mandatory("prioritylevelconfigurations").get(name)) is None:
        return []
    shown, mandatory = internal("PriorityLevelSpec", spec), internal("PriorityLevelSpec", fixed)
    exception = " except the 'spec.exempt' field" if name == "exempt" else ""
    if (shown | {"Exempt": None} == mandatory | {"Exempt": None}) if exception else shown == mandatory:
        return []
    return [field.invalid("spec", shown, f"spec of '{name}'{exception} must equal the fixed value")]


def _declared(spec: Object) -> list[FieldError]:
    """Validate the rules that upstream declares on the fields.

    They cover required types, and the member of a union that each type selects.
    """
    kind, limited = spec.get("type") or "", spec.get("limited")
    errors = [field.forbidden("spec.exempt")] if spec.get("exempt") is not None and kind != "Exempt" else []
    if kind in (*_KINDS, "") or feature_gates.enabled(GATE):
        errors += _member(limited, kind == "Limited", "spec.limited")
    if not kind:
        errors.append(field.required("spec.type"))
    if limited is None:
        return errors
    response, path = limited.get("limitResponse") or {}, "spec.limited.limitResponse"
    errors += _member(response.get("queuing"), response.get("type") == "Queue", f"{path}.queuing")
    return errors if response.get("type") else [*errors, field.required(f"{path}.type")]


def _member(value: Object | None, required: bool, path: str) -> list[FieldError]:
    if (value is not None) == required:
        return []
    return [field.required(path) if required else field.forbidden(path)]


def _shares(config: Object, path: str) -> list[FieldError]:
    shares = config.get("nominalConcurrencyShares") or 0
    return (
        [field.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")]
        if shares < 0
        else []
    )


def _percents(config: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    lendable, borrowed = config.get("lendablePercent"), config.get("borrowingLimitPercent")
    if lendable is not None and not 0 <= lendable <= 100:
        errors.append(field.invalid(f"{path}.lendablePercent", lendable, "must be between 0 and 100, inclusive"))
    if borrowed is not None and borrowed < 0:
        errors.append(
            field.invalid(f"{path}.borrowingLimitPercent", borrowed, "if specified, must be a non-negative integer")
        )
    return errors


def _limited(limited: Object) -> list[FieldError]:
    path, errors = "spec.limited", _shares(limited, "spec.limited")
    response = limited.get("limitResponse") or {}
    kind, queuing, at = response.get("type") or "", response.get("queuing"), f"{path}.limitResponse"
    if kind == "Queue" and queuing is not None:
        errors += _queuing(queuing, f"{at}.queuing")
    elif kind:
        errors += known(kind, frozenset({"Queue", "Reject"}), f"{at}.type")
    return errors + _percents(limited, path)


def _queuing(queuing: Object, path: str) -> list[FieldError]:
    length, queues, hand = (queuing.get(key) or 0 for key in ("queueLengthLimit", "queues", "handSize"))
    errors: list[FieldError] = []
    if length <= 0:
        errors.append(field.invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        errors.append(field.invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        errors.append(field.invalid(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}"))
    at = f"{path}.handSize"
    if hand <= 0:
        return [*errors, field.invalid(at, hand, "must be positive")]
    if hand > queues:
        return [*errors, field.invalid(at, hand, f"should not be greater than queues ({queues})")]
    if sum(log2(queues - i) for i in range(hand)) > _ENTROPY:
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_ENTROPY}"
        errors.append(field.invalid(at, hand, text))
    return errors


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    limited = spec.get("limited") or {}
    shares: Any = limited.get("nominalConcurrencyShares", NONE) if limited else NONE
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    numbers = [queuing.get(k, NONE) for k in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(obj), spec.get("type", ""), shares, *numbers, age(obj)]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Type"),
        Column("NominalConcurrencyShares"),
        Column("Queues"),
        Column("HandSize"),
        Column("QueueLengthLimit"),
        AGE,
    ),
    _row,
)
