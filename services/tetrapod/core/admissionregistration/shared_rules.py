"""Defaults, validation and columns that the kinds of admission policies and of their bindings share.

Upstream: pkg/apis/admissionregistration/{v1/defaults.go,validation/validation.go}.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.core.admissionregistration.expressions import Expressions
from tetrapod.core.admissionregistration.match_rules import (
    FAILURE_POLICIES,
    OPERATIONS,
    match_conditions,
    match_resources,
)
from tetrapod.core.cells import AGE, NAME, UNSET, age, name_of, spec_of
from tetrapod.core.validation.names import errors_from, known
from tetrapod.machinery import field
from tetrapod.machinery.cel.escaping import RESERVED
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.names import is_dns1035_label, is_dns1123_subdomain, is_path_segment_name
from tetrapod.machinery.table import Column, TableConvertor

_IDENTIFIER: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_EXCLUSIVE: Final = "name and selector are mutually exclusive"
_MUTATING: Final = OPERATIONS - {"DELETE"}


def set_policy_defaults(obj: Object) -> None:
    """Set the defaults of a mutating or validating admission policy, which is modified.

    They are failurePolicy Fail and the defaults of matchConstraints (`set_match_defaults`).
    """
    spec = obj.setdefault("spec", {})
    if spec.get("failurePolicy") is None:
        spec["failurePolicy"] = "Fail"
    if (match := spec.get("matchConstraints")) is not None:
        set_match_defaults(match)


def set_binding_defaults(obj: Object) -> None:
    """Set the defaults of matchResources (`set_match_defaults`) of a policy's binding, which is modified."""
    spec = obj.setdefault("spec", {})
    if (match := spec.get("matchResources")) is not None:
        set_match_defaults(match)


def set_match_defaults(match: Object) -> None:
    """Set the defaults of a MatchResources object, which is modified.

    They are the match policy Equivalent, empty selectors, and the scope `*` of rules.
    """
    if match.get("matchPolicy") is None:
        match["matchPolicy"] = "Equivalent"
    for key in ("namespaceSelector", "objectSelector"):
        if match.get(key) is None:
            match[key] = {}
    for resource_rule in [*(match.get("resourceRules") or ()), *(match.get("excludeResourceRules") or ())]:
        if resource_rule.get("scope") is None:
            resource_rule["scope"] = "*"


def validate_policy_spec(
    spec: Object, old: Object | None, expressions: Expressions, *, mutating: bool = False
) -> list[FieldError]:
    """Validate the spec fields that both kinds of policy have, and compile its match conditions and variables.

    failurePolicy and matchConstraints with at least one resource rule are required. paramKind has a valid apiVersion
    and a kind. Match conditions are validated again only if they or paramKind changed.

    Args:
        spec: the spec of the new policy.
        old: the stored policy, or None on create.
        expressions: the compiler; its later expressions can use the variables of the policy.
        mutating: whether it is a MutatingAdmissionPolicy, which cannot match deletes.
    """
    policy, constraints = spec.get("failurePolicy"), spec.get("matchConstraints")
    errors = (
        [field.required("spec.failurePolicy")]
        if policy is None
        else known(policy, FAILURE_POLICIES, "spec.failurePolicy")
    )
    if (kind := spec.get("paramKind")) is not None:
        errors += _param_kind(kind, "spec.paramKind")
    if constraints is None:
        errors.append(field.required("spec.matchConstraints"))
    else:
        errors += match_resources(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            errors.append(field.required("spec.matchConstraints.resourceRules"))
        errors += validate_mutable(constraints, "spec.matchConstraints") if mutating else []
    old_spec = (old or {}).get("spec") or {}
    if old is None or any(spec.get(key) != old_spec.get(key) for key in ("paramKind", "matchConditions")):
        errors += match_conditions(
            spec.get("matchConditions") or [], "spec.matchConditions", params=spec.get("paramKind") is not None
        )
    for i, variable in enumerate(spec.get("variables") or ()):
        errors += _variable(variable, f"spec.variables[{i}]", expressions)
    return errors


def validate_mutable(match: Object, path: str) -> list[FieldError]:
    """Return an error for each operation DELETE in the resource rules of a mutating policy.

    A deleted object cannot be mutated.

    Args:
        match: the MatchResources of a policy or binding.
        path: its field, for the errors.
    """
    operations = [operation for rule in match.get("resourceRules") or () for operation in rule.get("operations") or ()]
    return [
        error for operation in operations for error in known(operation, _MUTATING, f"{path}.resourceRules.operations")
    ]


def _param_kind(kind: Object, path: str) -> list[FieldError]:
    version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    errors: list[FieldError] = []
    at = f"{path}.apiVersion"
    if not version:
        errors.append(field.required(at))
    elif version.count("/") > 1:
        errors.append(field.invalid(at, version, f"unexpected GroupVersion string: {version}"))
    else:
        group, _, part = version.rpartition("/")
        if group and (texts := is_dns1123_subdomain(group)):
            errors.append(field.invalid(at, group, ",".join(texts)))
        if not part:
            errors.append(field.invalid(at, version, "version must be specified"))
        elif texts := is_dns1035_label(part):
            errors.append(field.invalid(at, part, ",".join(texts)))
    if not name:
        errors.append(field.required(f"{path}.kind"))
    elif texts := is_dns1035_label(name.lower()):
        text = f"may have mixed case, but should otherwise match: {','.join(texts)}"
        errors.append(field.invalid(f"{path}.kind", name, text))
    return errors


def _variable(variable: Object, path: str, expressions: Expressions) -> list[FieldError]:
    name = variable.get("name") or ""
    errors: list[FieldError] = []
    if not name.strip():
        errors.append(field.required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER(name) or name in RESERVED:
        errors.append(field.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not (variable.get("expression") or "").strip():
        errors.append(field.required(f"{path}.expression", "expression is not specified"))
    else:
        errors += expressions.variable(name, variable["expression"], f"{path}.expression")
    return errors


def validate_binding_spec(spec: Object) -> list[FieldError]:
    """Validate the spec fields that both kinds of binding have; all are optional.

    policyName is a DNS subdomain, paramRef is valid by `_param_ref`, and matchResources by `match_resources`.
    """
    name, match = spec.get("policyName") or "", spec.get("matchResources")
    errors = errors_from(is_dns1123_subdomain, name, "spec.policyName") if name else []
    if (reference := spec.get("paramRef")) is not None:
        errors += _param_ref(reference, "spec.paramRef")
    if match is not None:
        errors += match_resources(match, "spec.matchResources")
    return errors


def _param_ref(reference: Object, path: str) -> list[FieldError]:
    name, selector, action = (
        reference.get("name") or "",
        reference.get("selector"),
        reference.get("parameterNotFoundAction"),
    )
    errors: list[FieldError] = []
    if name:
        errors += errors_from(is_path_segment_name, name, f"{path}.name")
        errors += [field.forbidden(f"{path}.name", _EXCLUSIVE)] if selector is not None else []
    if selector is not None:
        errors += validate_label_selector(selector, f"{path}.selector")
        errors += [field.forbidden(f"{path}.selector", _EXCLUSIVE)] if name else []
    if not name and selector is None:
        errors.append(field.required(path, "one of name or selector must be specified"))
    at = f"{path}.parameterNotFoundAction"
    return errors + (known(action, ["Deny", "Allow"], at) if action else [field.required(at)])


def param_kind_text(obj: Object) -> str:
    """Return the column ParamKind of a policy, "group/version/kind", or `<unset>`."""
    kind = spec_of(obj).get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _go_selector(selector: Object) -> str:
    """Format a LabelSelector as the String method of its Go type does: `&LabelSelector{MatchLabels:…,}`."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _binding_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    ref = spec.get("paramRef")
    text = UNSET
    if ref and ref.get("name"):
        text = f"{ref.get('namespace') or '*'}/{ref['name']}"
    elif ref and ref.get("selector") is not None:
        text = _go_selector(ref["selector"])
    return [name_of(obj), spec.get("policyName", ""), text, age(obj)]


BINDING_TABLE: Final = TableConvertor(
    (
        NAME,
        Column("PolicyName"),
        Column("ParamRef"),
        AGE,
    ),
    _binding_row,
)
