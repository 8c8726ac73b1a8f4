"""Field and label selectors in access reviews: their validation and their conversion to requirements for authorizers.

Requirements that cannot be parsed are left out. The authorizer then decides about a broader request, and
evaluationError says so.

Upstream: pkg/apis/authorization/validation and pkg/registry/authorization/util/helpers.go.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tetrapod.machinery import field, field_selectors, labels
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

Requirement = dict[str, Any]
_PARSED: Final = {
    "in": "In",
    "=": "In",
    "==": "In",
    "notin": "NotIn",
    "!=": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
}


class ParsedSelector(NamedTuple):
    """The result of converting a selector.

    Attributes:
        requirements: those that could be parsed.
        error: the text for evaluationError if some could not be parsed, else "".
    """

    requirements: tuple[Requirement, ...] = ()
    error: str = ""


def validate_selectors(attributes: Object, path: str) -> list[FieldError]:
    """Validate fieldSelector and labelSelector of resourceAttributes.

    Each, if it is set, has either a rawSelector, which is not parsed here, or valid requirements.

    Args:
        attributes: the resourceAttributes.
        path: their field path, for the errors.
    """
    errors: list[FieldError] = []
    for name, check in (("fieldSelector", _field_requirement_errors), ("labelSelector", _label_requirement_errors)):
        selector = attributes.get(name)
        if selector is None:
            continue
        where = f"{path}.{name}"
        raw, requirements = selector.get("rawSelector") or "", selector.get("requirements") or []
        if raw and requirements:
            errors.append(
                field.invalid(f"{where}.rawSelector", raw, "may not specified at the same time as requirements")
            )
        if not raw and not requirements:
            text = f"when {where} is specified, requirements or rawSelector is required"
            errors.append(field.required(f"{where}.requirements", text))
        for i, requirement in enumerate(requirements):
            errors += check(requirement, field.index(f"{where}.requirements", i))
    return errors


def _field_requirement_errors(requirement: Requirement, path: str) -> list[FieldError]:
    errors = []
    if not requirement.get("key"):
        errors.append(field.required(f"{path}.key", "must be specified"))
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        errors.append(field.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in ("Exists", "DoesNotExist") and values:
        errors.append(
            field.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        )
    return errors


def _label_requirement_errors(requirement: Requirement, path: str) -> list[FieldError]:
    """Validate a label requirement. Unknown operators are accepted, because newer clients may send them.

    Args:
        path: the field of the requirement, for the errors.
    """
    errors = labels.validate_label_selector_requirement(requirement, path)
    return [error for error in errors if error.field != f"{path}.operator"]


def parse_field_selector(selector: Object | None, path: str) -> ParsedSelector:
    """Convert the field selector of resourceAttributes to requirements.

    Args:
        selector: the field selector, parsed or as text in `rawSelector`; None for no requirements.
        path: the field of the selector, for the error text.

    Returns:
        the valid requirements, and an error text if others were ignored. A malformed `rawSelector` gives no
            requirements and an error text; nothing is raised.
    """
    if not selector:
        return ParsedSelector()
    if raw := selector.get("rawSelector"):
        try:
            parsed = field_selectors.parse(raw).requirements
        except ValueError:
            return ParsedSelector((), f"{path} ignored due to parse error")
        return ParsedSelector(
            tuple({"key": k, "operator": "NotIn" if op == "!=" else "In", "values": [v]} for k, op, v in parsed)
        )
    requirements = selector.get("requirements") or []
    # Upstream's field selectors support only equality with one value.
    known = tuple(r for r in requirements if r.get("operator") in ("In", "NotIn") and len(r.get("values") or ()) == 1)
    return _parsed_selector(known, len(requirements), path)


def parse_label_selector(selector: Object | None, path: str) -> ParsedSelector:
    """Convert the label selector of resourceAttributes to requirements.

    Args:
        selector: the label selector, parsed or as text in `rawSelector`; None for no requirements.
        path: the field of the selector, for the error text.

    Returns:
        the valid requirements, and an error text if others were ignored. A malformed `rawSelector` gives no
        requirements and an error text; nothing is raised. Requirements
        with `>` or `<` in `rawSelector` are left out without an error text.
    """
    if not selector:
        return ParsedSelector()
    if raw := selector.get("rawSelector"):
        try:
            parsed = labels.parse(raw).requirements
        except ValueError:
            return ParsedSelector((), f"{path} ignored due to parse error")
        return ParsedSelector(tuple(_from_parsed(r) for r in parsed if r.op in _PARSED))
    requirements = selector.get("requirements") or []
    return _parsed_selector(tuple(r for r in requirements if _parses(r)), len(requirements), path)


def _from_parsed(requirement: labels.Requirement) -> Requirement:
    converted: Requirement = {"key": requirement.key, "operator": _PARSED[requirement.op]}
    if requirement.values:
        converted["values"] = sorted(requirement.values)
    return converted


def _parses(requirement: Requirement) -> bool:
    operator = labels.OPERATORS.get(requirement.get("operator") or "")
    if operator is None:
        return False
    try:
        labels.requirement(requirement.get("key") or "", operator, list(requirement.get("values") or ()))
    except ValueError:
        return False
    return True


def _parsed_selector(known: tuple[Requirement, ...], total: int, path: str) -> ParsedSelector:
    """Return the requirements, with an error text if there are fewer than `total`.

    Args:
        known: the requirements that could be parsed.
        total: the number of requirements in the selector.
        path: the field of the selector.
    """
    if len(known) == total:
        return ParsedSelector(known)
    return ParsedSelector(known, f"{path} {'partially ' if known else ''}ignored due to parse error")
