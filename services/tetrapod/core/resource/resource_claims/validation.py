"""Validation of ResourceClaims, and of the device requests that ResourceClaimTemplates have too.

Upstream: pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.core.resource.conversion import EXACT_FIELDS
from tetrapod.core.resource.device_rules import EFFECTS, ErrorLists, configuration, fully_qualified, selectors
from tetrapod.core.resource.resource_claims.derived_attributes import (
    ConstrainedAttributes,
    constrained_attributes,
    derived_attributes,
)
from tetrapod.core.validation.names import IMMUTABLE, dns_label, errors_from
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, is_long_name, is_qualified_name, is_valid_label_value
from tetrapod.machinery.raw_extensions import CLAIM_PARAMETERS, same_texts

_ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_ATTRIBUTE: Final = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
)
"""Upstream's text for a constraint without any attribute, although it speaks of several."""
MOST: Final = 32
"""The largest number of requests, of references to requests, of constraints and of configurations."""
_TOO_COMPLEX: Final = "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
_MOST_ALTERNATIVES: Final = 8
_OPERATORS: Final = frozenset({"Equal", "Exists"})
_MODES: Final = frozenset({"All", "ExactCount"})
_ORDER: Final = {
    "request": ("name", "exactly", "firstAvailable"),
    "exactly": EXACT_FIELDS,
    "sub": ("name", *(name for name in EXACT_FIELDS if name != "adminAccess")),
    "toleration": ("key", "operator", "value", "effect", "tolerationSeconds"),
}


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ResourceClaim by the rules of `validate_devices`."""
    errors = ErrorLists()
    validate_devices((obj.get("spec") or {}).get("devices") or {}, "spec.devices", errors)
    return errors.all()


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of a ResourceClaim's spec, also of the order of parameters; it is not validated again."""
    if same(new.get("spec"), old.get("spec")) and same_texts(new, old, CLAIM_PARAMETERS):
        return []
    return [field.invalid("spec", None, IMMUTABLE)]


def validate_devices(devices: Object, path: str, collected: ErrorLists) -> None:
    """Validate the device requests, constraints and configurations of a claim or of a claim template.

    Requests have unique names, and either `exactly` or alternatives. A constraint has an attribute, and refers to
    requests of the claim. Each of the three lists has at most 32 elements.

    Args:
        devices: the field of that name in the spec.
        path: its path.
        collected: receives the errors.
    """
    requests, constraints, configs = (devices.get(key) or [] for key in ("requests", "constraints", "config"))
    attributes = constrained_attributes(constraints)
    if collected.within_limit(requests, f"{path}.requests", MOST):
        collected.unique([r.get("name") or "" for r in requests], f"{path}.requests", map(_shown_request, requests))
        for i, request in enumerate(requests):
            _request(request, f"{path}.requests[{i}]", attributes, collected)
    names = request_names(requests)
    if collected.within_limit(constraints, f"{path}.constraints", MOST):
        for i, constraint in enumerate(constraints):
            _constraint(constraint, names, f"{path}.constraints[{i}]", collected)
    if collected.within_limit(configs, f"{path}.config", MOST):
        for i, config in enumerate(configs):
            references(config.get("requests") or [], names, f"{path}.config[{i}].requests", collected)
            configuration(config, f"{path}.config[{i}]", collected)
    if collected.selectors.is_too_complex:
        collected.written.append(field.forbidden(path, _TOO_COMPLEX))


def request_names(requests: list[Object]) -> set[str]:
    """Return the names of requests, and of their alternatives as `request/subrequest`."""
    names = {r.get("name") or "" for r in requests}
    return names | {f"{r.get('name')}/{sub.get('name')}" for r in requests for sub in r.get("firstAvailable") or ()}


def _shown(value: Object, kind: str, **defaults: Any) -> Object:
    given = {**defaults, **value}
    shown = {key: given[key] for key in _ORDER[kind] if given.get(key) is not None}
    if "tolerations" in shown:
        shown["tolerations"] = [_shown(t, "toleration") for t in shown["tolerations"]]
    return shown


def _shown_request(request: Object) -> Object:
    shown = _shown(request, "request", name="")
    if "exactly" in shown:
        shown["exactly"] = _shown(shown["exactly"], "exactly", deviceClassName="")
    if "firstAvailable" in shown:
        shown["firstAvailable"] = [_shown(sub, "sub", name="", deviceClassName="") for sub in shown["firstAvailable"]]
    return shown


def _request(request: Object, path: str, attributes: ConstrainedAttributes, collected: ErrorLists) -> None:
    name = request.get("name") or ""
    exactly, first = request.get("exactly"), request.get("firstAvailable") or []
    both = exactly is not None and bool(first)
    collected.written += dns_label(request.get("name") or "", f"{path}.name")
    kind_errors = ErrorLists(selectors=collected.selectors)
    if exactly is not None:
        kind_errors.written += _class_name(exactly, f"{path}.exactly.deviceClassName", is_dns1123_subdomain)
        _device_request(exactly, f"{path}.exactly", name, attributes, kind_errors, compiles=not both)
    _alternatives(first, f"{path}.firstAvailable", name, attributes, kind_errors, compiles=not both)
    if both:  # errors of declared rules are reported for both nevertheless
        collected.written.append(field.invalid(path, None, f"{_ONE_KIND}, but multiple fields are set"))
    elif exactly is None and not first:
        collected.written.append(field.required(path, _ONE_KIND))
    else:
        collected.written += kind_errors.written
    collected.declared += kind_errors.declared


def _alternatives(
    listed: list[Object],
    path: str,
    request: str,
    attributes: ConstrainedAttributes,
    collected: ErrorLists,
    *,
    compiles: bool,
) -> None:
    """Validate the alternatives of a request, adding errors to `collected`.

    Args:
        listed: the alternatives.
        path: their field path, for the errors.
        request: the name of the request.
        attributes: the attributes that the constraints of the claim name.
        collected: receives the errors.
        compiles: whether the expressions are compiled.
    """
    if not collected.within_limit(listed, path, _MOST_ALTERNATIVES):
        return
    shown = (_shown(sub, "sub", name="", deviceClassName="") for sub in listed)
    collected.unique([sub.get("name") or "" for sub in listed], path, shown)
    for i, sub in enumerate(listed):
        collected.written += dns_label(sub.get("name") or "", f"{path}[{i}].name")
        collected.declared += _class_name(sub, f"{path}[{i}].deviceClassName", is_long_name)
        name = f"{request}/{sub.get('name') or ''}"
        _device_request(sub, f"{path}[{i}]", name, attributes, collected, compiles=compiles)


def _class_name(request: Object, path: str, check: Callable[[str], list[str]]) -> list[FieldError]:
    name = request.get("deviceClassName") or ""
    return errors_from(check, name, path) if name else [field.required(path)]


def _device_request(
    request: Object,
    path: str,
    name: str,
    attributes: ConstrainedAttributes,
    collected: ErrorLists,
    *,
    compiles: bool,
) -> None:
    """Validate the fields that a request and an alternative share, adding errors to `collected`.

    Args:
        request: the field `exactly`, or an element of `firstAvailable`.
        path: its field path, for the errors.
        name: the name of the request, or `request/subrequest`.
        attributes: the attributes that the constraints of the claim name.
        collected: receives the errors.
        compiles: whether the expressions are compiled.
    """
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    selectors(request.get("selectors") or [], f"{path}.selectors", collected, compiles=compiles)
    derived = request.get("derivedAttributes") or []
    derived_attributes(derived, f"{path}.derivedAttributes", name, attributes, collected, compiles=compiles)
    if mode == "All" and count:
        collected.written.append(
            field.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
        )
    elif mode == "ExactCount" and count <= 0:
        collected.written.append(field.invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        collected.declared.append(field.not_supported(f"{path}.allocationMode", mode, _MODES))
    for i, device_toleration in enumerate(request.get("tolerations") or ()):
        toleration(device_toleration, f"{path}.tolerations[{i}]", collected)


def toleration(given: Object, path: str, collected: ErrorLists) -> None:
    """Validate one device toleration, adding errors to `collected`.

    The operator is required; with Exists the value must be empty, with Equal valid as that of a label. Key and effect
    are valid, if they are set.

    Args:
        given: the toleration.
        path: its field path, for the errors.
    """
    operator, value, effect = (given.get(key) or "" for key in ("operator", "value", "effect"))
    if key := given.get("key"):
        collected.declared += errors_from(is_qualified_name, key, f"{path}.key")
    if operator == "Exists" and value:
        collected.written.append(field.invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        collected.written += errors_from(is_valid_label_value, value, f"{path}.value")
    elif not operator:
        collected.written.append(field.required(f"{path}.operator"))
    elif operator not in _OPERATORS:
        collected.declared.append(field.not_supported(f"{path}.operator", operator, _OPERATORS))
    if effect and effect not in EFFECTS:
        collected.declared.append(field.not_supported(f"{path}.effect", effect, EFFECTS))


def references(listed: list[str], names: set[str], path: str, collected: ErrorLists) -> None:
    """Validate references to requests, adding errors to `collected`.

    There are at most 32, which are unique and exist (`reference`).

    Args:
        listed: the references.
        names: the result of `request_names`.
        path: the field path of the list, for the errors.
    """
    if not collected.within_limit(listed, path, MOST):
        return
    collected.unique(listed, path)
    for i, name in enumerate(listed):
        reference(name, names, f"{path}[{i}]", collected)


def reference(name: str, names: set[str], path: str, collected: ErrorLists) -> None:
    """Validate one reference to a request, adding errors to `collected`.

    It consists of one or two DNS labels and is one of `names`.

    Args:
        name: the name of a request, or `request/subrequest`.
        names: the result of `request_names`.
        path: the field path of the reference, for the errors.
    """
    parts = name.split("/")
    if len(parts) <= 2:
        for part in parts:
            collected.written += dns_label(part, path)
    if name not in names:
        collected.written.append(field.invalid(path, name, _REFERENCE))


def _constraint(constraint: Object, names: set[str], path: str, collected: ErrorLists) -> None:
    references(constraint.get("requests") or [], names, f"{path}.requests", collected)
    match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if match is None and distinct is None:
        if feature_gates.enabled("DRAConsumableCapacity"):
            collected.written.append(field.required(path, _ONE_ATTRIBUTE))
        else:
            collected.written.append(field.required(f"{path}.matchAttribute"))
    for key, name in (("matchAttribute", match), ("distinctAttribute", distinct)):
        if name is not None:
            collected.declared += fully_qualified(name, f"{path}.{key}")
