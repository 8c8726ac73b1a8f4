"""Validation of the fields that control scheduling.

The fields are affinity, tolerations, topology spread constraints and scheduling gates.

Upstream: pkg/apis/core/validation/validation.go, validateAffinity, ValidateTolerations,
validateTopologySpreadConstraints and related functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tetrapod.core.podspec.stored import Rule, stored_spec_has
from tetrapod.core.validation.names import errors_from, known, qualified_name
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.integers import parse_int
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_name, validate_label_selector
from tetrapod.machinery.names import is_dns1123_subdomain, is_valid_label_value, name_is_dns_label

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS: Final = frozenset({"DoNotSchedule", "ScheduleAnyway"})
_INCLUSION: Final = frozenset({"Honor", "Ignore"})
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_MERGING_GATES: Final = ("MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge")
_CANONICAL_INTEGER: Final = re.compile("0|-?[1-9][0-9]*")
_KeyRules = Callable[[Object, Object | None, str], list[FieldError]]
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_BOTH: Final = "exists in both matchLabelKeys and labelSelector"


def affinity(rules: Object | None, path: str) -> list[FieldError]:
    """Validate spec.affinity of a pod, which may be None.

    Weights of preferred terms are 1 to 100. Node selector terms have valid keys, operators and values. Pod terms have
    valid selectors, namespaces and label keys, and a topologyKey.

    Args:
        path: the field path of spec.affinity, for the errors.
    """
    if not rules:
        return []
    errors: list[FieldError] = []
    if (node := rules.get("nodeAffinity")) is not None:
        errors += _node_affinity(node, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        if (pod := rules.get(kind)) is not None:
            errors += _pod_affinity(pod, f"{path}.{kind}")
    return errors


def _weight(term: Object, path: str) -> list[FieldError]:
    weight = term.get("weight") or 0
    return [] if 0 < weight <= 100 else [field.invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_affinity(node: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (selector := node.get(_REQUIRED)) is not None:
        errors += node_selector(selector, f"{path}.{_REQUIRED}", relaxed=_has_invalid_node_values)
    for i, term in enumerate(node.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{i}]"
        errors += _weight(term, at)
        errors += _node_term(term.get("preference") or {}, f"{at}.preference", any_value=True)
    return errors


def _has_invalid_node_values(spec: Object) -> bool:
    """Return whether the required node affinity of a pod compares labels with an invalid value."""
    return has_invalid_values(((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {})


def node_selector(
    selector: Object, path: str, *, relaxed: Rule | None = None, any_value: bool = False
) -> list[FieldError]:
    """Validate a node selector, which needs at least one term.

    In matchExpressions, keys and values are valid as labels, and the number of values fits the operator. matchFields
    may only compare metadata.name with one value.

    Args:
        path: the field path of the selector, for the errors.
        relaxed: returns whether a stored pod spec has values that permit invalid ones; None if none permits them.
        any_value: do not check the values, for updates of other objects that already have invalid ones.
    """
    path, terms = f"{path}.nodeSelectorTerms", selector.get("nodeSelectorTerms") or []
    if not terms:
        return [field.required(path, "must have at least one node selector term")]

    def term_errors(any_value: bool) -> list[FieldError]:
        return [
            error for i, term in enumerate(terms) for error in _node_term(term, f"{path}[{i}]", any_value=any_value)
        ]

    errors = term_errors(any_value=any_value)
    return term_errors(any_value=True) if errors and relaxed is not None and stored_spec_has(relaxed) else errors


def has_invalid_values(selector: Object) -> bool:
    """Return whether a node selector has values that are invalid as labels.

    Upstream: HasInvalidLabelValueInNodeSelectorTerms
    """
    return any(
        is_valid_label_value(value)
        for term in selector.get("nodeSelectorTerms") or ()
        for requirement in term.get("matchExpressions") or ()
        for value in requirement.get("values") or ()
    )


def _node_term(term: Object, path: str, *, any_value: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, requirement in enumerate(term.get("matchExpressions") or ()):
        errors += _node_requirement(requirement, f"{path}.matchExpressions[{i}]", any_value)
    for i, requirement in enumerate(term.get("matchFields") or ()):
        errors += _node_field(requirement, f"{path}.matchFields[{i}]")
    return errors


def _node_requirement(requirement: Object, path: str, any_value: bool) -> list[FieldError]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    errors: list[FieldError] = []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(field.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(
                field.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            )
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(
                field.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
            )
    else:
        errors.append(field.invalid(f"{path}.operator", field.TypedText(operator), "not a valid selector operator"))
    errors += validate_label_name(requirement.get("key") or "", f"{path}.key")
    if not any_value:
        for i, value in enumerate(values):
            errors += errors_from(is_valid_label_value, value, f"{path}.values[{i}]")
    return errors


def _node_field(requirement: Object, path: str) -> list[FieldError]:
    operator, values, key = (
        requirement.get("operator") or "",
        requirement.get("values") or [],
        requirement.get("key") or "",
    )
    errors: list[FieldError] = []
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(field.required(f"{path}.values", text))
    else:
        errors.append(field.invalid(f"{path}.operator", field.TypedText(operator), "not a valid selector operator"))
    if key != "metadata.name":
        return [*errors, field.invalid(f"{path}.key", key, "not a valid field selector key")]
    for i, value in enumerate(values):
        errors += errors_from(is_dns1123_subdomain, value, f"{path}.values[{i}]")
    return errors


def _pod_affinity(pod: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, term in enumerate(pod.get(_REQUIRED) or ()):
        errors += _pod_term(term, f"{path}.{_REQUIRED}[{i}]")
    for i, weighted in enumerate(pod.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{i}]"
        errors += _weight(weighted, at)
        errors += _pod_term(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return errors


def _pod_term(term: Object, path: str) -> list[FieldError]:
    selector = term.get("labelSelector")
    errors = _term_selectors(term, path, any_value=False)
    if errors and stored_spec_has(_has_invalid_term_selector):
        errors = _term_selectors(term, path, any_value=True)
    for name in term.get("namespaces") or ():
        errors += [field.invalid(f"{path}.namespace", name, text) for text in name_is_dns_label(name, False)]
    errors += _label_keys(term, selector, path)
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(field.required(f"{path}.topologyKey", "can not be empty"))
    return errors + validate_label_name(key, f"{path}.topologyKey")


def _term_selectors(term: Object, path: str, *, any_value: bool) -> list[FieldError]:
    return [
        error
        for name in ("labelSelector", "namespaceSelector")
        for error in validate_label_selector(term.get(name), f"{path}.{name}", allow_invalid_values=any_value)
    ]


def _has_invalid_term_selector(spec: Object) -> bool:
    """Return whether a selector of a pod affinity or anti-affinity term is invalid."""
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = (spec.get("affinity") or {}).get(kind) or {}
        preferred = [weighted.get("podAffinityTerm") or {} for weighted in rules.get(_PREFERRED) or ()]
        if any(_term_selectors(term, "", any_value=False) for term in (*(rules.get(_REQUIRED) or ()), *preferred)):
            return True
    return False


def _label_keys(term: Object, selector: Object | None, path: str) -> list[FieldError]:
    matched, mismatched = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    errors: list[FieldError] = []
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            errors.append(field.forbidden(f"{path}.{name}", _NO_SELECTOR))
        else:
            for i, key in enumerate(keys):
                errors += validate_label_name(key, f"{path}.{name}[{i}]")
    if selector is not None:
        indexes = {key: i for i, key in enumerate(matched)}
        selector_keys = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key") or ""
            if key in indexes and key in selector_keys:
                errors.append(field.invalid(f"{path}[{indexes[key]}]", key, _BOTH))
            selector_keys.add(key)
    both = "exists in both matchLabelKeys and mismatchLabelKeys"
    return errors + [
        field.invalid(f"{path}.matchLabelKeys[{i}]", key, both) for i, key in enumerate(matched) if key in mismatched
    ]


def tolerations(listed: list[Object], path: str, *, compares: bool = False) -> list[FieldError]:
    """Validate the tolerations of a pod.

    Keys and values are valid as labels, and operator and effect are known. Without a key, the operator must be Exists.
    With Exists, the value must be empty. tolerationSeconds requires the effect NoExecute.

    Args:
        path: the field path of the list, for the errors.
        compares: whether the operators Lt and Gt may be used, whose values are integers.
    """
    errors: list[FieldError] = []
    for i, toleration in enumerate(listed):
        errors += _toleration(toleration, f"{path}[{i}]", compares)
    return errors


def _toleration(toleration: Object, path: str, compares: bool) -> list[FieldError]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    errors = validate_label_name(key, f"{path}.key") if key else []
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(field.invalid(f"{path}.operator", field.TypedText(operator), text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        errors.append(
            field.invalid(
                f"{path}.effect", field.TypedText(effect), "effect must be 'NoExecute' when `tolerationSeconds` is set"
            )
        )
    if operator in ("", "Equal"):
        if texts := is_valid_label_value(value):
            errors.append(field.invalid(f"{path}.operator", value, ";".join(texts)))
    elif operator == "Exists":
        if value:
            errors.append(field.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'"))
    elif operator in ("Lt", "Gt") and compares:
        errors += _compared_value(value, f"{path}.value")
    else:
        supported = ["Equal", "Exists", "Lt", "Gt"] if operator in ("Lt", "Gt") else ["Equal", "Exists"]
        errors.append(field.not_supported(f"{path}.operator", operator, supported))
    return errors + (known(effect, TAINT_EFFECTS, f"{path}.effect") if effect else [])


def _compared_value(value: str, path: str) -> list[FieldError]:
    """Validate that a value is an int64 without leading zeros, plus sign or other decoration."""
    errors: list[FieldError] = []
    if not value:
        errors.append(field.invalid(path, value, "must be non-empty"))
    elif not _CANONICAL_INTEGER.fullmatch(value):
        errors.append(field.invalid(path, value, "must be a valid decimal integer in canonical form"))
    try:
        parse_int(value)
    except ValueError as error:
        errors.append(field.invalid(path, value, str(error)))
    return errors


def gates(listed: list[Object], path: str) -> list[FieldError]:
    """Validate scheduling gates, whose names must be unique qualified names.

    Args:
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, gate in enumerate(listed):
        name = gate.get("name") or ""
        errors += qualified_name(name, f"{path}[{i}]")
        if name in seen:
            errors.append(field.duplicate(f"{path}[{i}]", name))
        seen.add(name)
    return errors


def spread(constraints: list[Object], path: str) -> list[FieldError]:
    """Validate topology spread constraints, which must be unique by topologyKey and whenUnsatisfiable.

    maxSkew and minDomains are positive, and minDomains requires DoNotSchedule. The topologyKey is required. Policies
    are known values, and selectors and label keys are valid.

    Args:
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    keys = [(c.get("topologyKey") or "", c.get("whenUnsatisfiable") or "") for c in constraints]
    last = {key: i for i, key in enumerate(keys)}
    validate_keys = _rules_of_keys()
    for i, constraint in enumerate(constraints):
        errors += _spread(constraint, f"{path}[{i}]", validate_keys=validate_keys, is_repeated=last[keys[i]] > i)
    return errors


def _spread(constraint: Object, path: str, *, validate_keys: _KeyRules, is_repeated: bool) -> list[FieldError]:
    key, action = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
    errors = _positive(constraint.get("maxSkew") or 0, f"{path}.maxSkew")
    if not key:
        errors.append(field.required(f"{path}.topologyKey", "can not be empty"))
    errors += known(action, _ACTIONS, f"{path}.whenUnsatisfiable")
    if is_repeated:
        errors.append(field.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    if (least := constraint.get("minDomains")) is not None:
        errors += _positive(least, f"{path}.minDomains")
        if action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(field.invalid(f"{path}.minDomains", least, text))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if (policy := constraint.get(name)) is not None:
            errors += known(policy, _INCLUSION, f"{path}.{name}")
    selector = constraint.get("labelSelector")
    errors += validate_keys(constraint, selector, path)
    invalid = validate_label_selector(selector, f"{path}.labelSelector")
    return errors if invalid and stored_spec_has(_has_invalid_spread_selector) else errors + invalid


def _rules_of_keys() -> _KeyRules:
    """Return the rules for matchLabelKeys of topology spread constraints: those for merged or for separate keys.

    The gates choose. If the stored spec violates the chosen rules, the others apply.
    """
    if merges_keys():
        return _separate_label_keys if stored_spec_has(_violates_merged_keys) else _label_keys
    relaxed = feature_gates.enabled(_MERGING_GATES[0]) and stored_spec_has(_violates_separate_keys)
    return _label_keys if relaxed else _separate_label_keys


def _violates_merged_keys(spec: Object) -> bool:
    return _violates_keys(spec, _label_keys)


def _violates_separate_keys(spec: Object) -> bool:
    return _violates_keys(spec, _separate_label_keys)


def _violates_keys(spec: Object, rules: _KeyRules) -> bool:
    return any(rules(one, one.get("labelSelector"), "") for one in spec.get("topologySpreadConstraints") or ())


def _has_invalid_spread_selector(spec: Object) -> bool:
    constraints = spec.get("topologySpreadConstraints") or ()
    return any(validate_label_selector(constraint.get("labelSelector"), "") for constraint in constraints)


def merges_keys() -> bool:
    """Return whether matchLabelKeys of topology spread constraints become a part of their labelSelector."""
    return all(map(feature_gates.enabled, _MERGING_GATES))


def _separate_label_keys(constraint: Object, selector: Object | None, path: str) -> list[FieldError]:
    """Validate matchLabelKeys that do not become a part of the selector, which must not contain them."""
    keys, path = constraint.get("matchLabelKeys") or [], f"{path}.matchLabelKeys"
    errors = [field.forbidden(path, _NO_SELECTOR)] if keys and selector is None else []
    in_selector = set((selector or {}).get("matchLabels") or ())
    in_selector |= {expression.get("key") or "" for expression in (selector or {}).get("matchExpressions") or ()}
    for i, key in enumerate(keys):
        errors += validate_label_name(key, f"{path}[{i}]")
        if key in in_selector:
            errors.append(field.invalid(f"{path}[{i}]", key, _BOTH))
    return errors


def _positive(value: int, path: str) -> list[FieldError]:
    return [] if value > 0 else [field.invalid(path, value, "must be greater than zero")]
