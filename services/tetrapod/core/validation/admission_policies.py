"""Validation of ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings.

Errors of rules that the schema declares (required fields) come after those of hand-written rules.

Upstream: pkg/apis/admissionregistration/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.core.validation.admission_rules import FAILURE_POLICIES, OPERATIONS, match_conditions, match_resources, reserved_name
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.names import complaints, known, qualified_name
from tetrapod.core.validation.policy_expressions import Expressions
from tetrapod.machinery import field
from tetrapod.machinery.cel.reserved import RESERVED
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.jsonpath_parser import parse_template
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.names import is_dns1035_label, is_dns1123_subdomain, is_path_segment_name

_REASONS: Final = frozenset({"Forbidden", "Invalid", "RequestEntityTooLarge"})
_IDENTIFIER: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"
_MOST_ANNOTATIONS: Final = 20
_LONGEST_VALUE: Final = 5 * 1024
_ACTIONS: Final = frozenset({"Deny", "Warn", "Audit"})
_BOTH: Final = (
    "must not contain both Deny and Warn"
    " (repeating the same validation failure information in the API response and headers serves no purpose)"
)
_EXCLUSIVE: Final = "name and selector are mutually exclusive"
_MUTATING: Final = OPERATIONS - {"DELETE"}
_PATCH_TYPES: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ValidatingAdmissionPolicy."""
    return _validating(obj, None) + reserved_name(obj)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ValidatingAdmissionPolicy."""
    return _validating(new, old)


def _validating(obj: Object, old: Object | None) -> list[FieldError]:
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name") or ""
    expressions = Expressions(params=spec.get("paramKind") is not None, composed=bool(spec.get("variables")))
    errors = _common(spec, old, expressions)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        return [*errors, field.required("spec.validations", _NOTHING), field.required("spec.auditAnnotations", _NOTHING)]
    for i, validation in enumerate(validations):
        errors += _validation(validation, f"spec.validations[{i}]", expressions)
    if len(annotations) > _MOST_ANNOTATIONS:
        shown = [
            {"Key": annotation_spec.get("key") or "", "ValueExpression": annotation_spec.get("valueExpression") or ""}
            for annotation_spec in annotations
        ]
        errors.append(field.invalid("spec.auditAnnotations", shown, f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"))
    keys = [a.get("key") or "" for a in annotations]
    repeated_indexes = repeated(keys)
    for i, annotation in enumerate(annotations):
        errors += _annotation(annotation, name, f"spec.auditAnnotations[{i}]", expressions)
        if i in repeated_indexes:
            errors.append(field.duplicate(f"spec.auditAnnotations[{i}].key", keys[i]))
    return errors


def _common(spec: Object, old: Object | None, expressions: Expressions, *, mutating: bool = False) -> list[FieldError]:
    """Validate the spec fields that both kinds of policy have. `old` is None on create.

    Match conditions are validated again only if they or paramKind changed.
    """
    policy, constraints = spec.get("failurePolicy"), spec.get("matchConstraints")
    errors = [field.required("spec.failurePolicy")] if policy is None else known(policy, FAILURE_POLICIES, "spec.failurePolicy")
    if (kind := spec.get("paramKind")) is not None:
        errors += _param_kind(kind, "spec.paramKind")
    if constraints is None:
        errors.append(field.required("spec.matchConstraints"))
    else:
        errors += match_resources(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            errors.append(field.required("spec.matchConstraints.resourceRules"))
        errors += _mutable(constraints, "spec.matchConstraints") if mutating else []
    old_spec = (old or {}).get("spec") or {}
    if old is None or any(spec.get(key) != old_spec.get(key) for key in ("paramKind", "matchConditions")):
        errors += match_conditions(spec.get("matchConditions") or [], "spec.matchConditions", params=spec.get("paramKind") is not None)
    for i, variable in enumerate(spec.get("variables") or ()):
        errors += _variable(variable, f"spec.variables[{i}]", expressions)
    return errors


def _mutable(match: Object, path: str) -> list[FieldError]:
    """Reject the operation DELETE in the resource rules of a mutating policy: a deleted object cannot be mutated."""
    operations = [operation for rule in match.get("resourceRules") or () for operation in rule.get("operations") or ()]
    return [error for operation in operations for error in known(operation, _MUTATING, f"{path}.resourceRules.operations")]


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


def _validation(validation: Object, path: str, expressions: Expressions) -> list[FieldError]:
    message, computed, reason = validation.get("message") or "", validation.get("messageExpression") or "", validation.get("reason")
    errors: list[FieldError] = []
    if not (validation.get("expression") or "").strip():
        errors.append(field.required(f"{path}.expression", "expression is not specified"))
    else:
        errors += expressions.condition(validation["expression"], f"{path}.expression")
    if computed and not computed.strip():
        errors.append(field.invalid(f"{path}.messageExpression", computed, "must be non-empty if specified"))
    elif computed:
        errors += expressions.message(computed, f"{path}.messageExpression")
    if message and not message.strip():
        errors.append(field.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(field.invalid(f"{path}.message", message, "must not contain line breaks"))
    return errors + (known(reason, _REASONS, f"{path}.reason") if reason is not None else [])


def _annotation(annotation: Object, name: str, path: str, expressions: Expressions) -> list[FieldError]:
    key, value = annotation.get("key") or "", (annotation.get("valueExpression") or "").strip()
    if name:
        errors = qualified_name(f"{name}/{key}", f"{path}.key")
    else:
        errors = [field.invalid(f"{path}.key", key, "requires metadata.name be non-empty")]
    if not value:
        errors.append(field.required(f"{path}.valueExpression", "valueExpression is not specified"))
    elif len(value.encode()) > _LONGEST_VALUE:
        errors.append(field.required(f"{path}.valueExpression", f"must not exceed {_LONGEST_VALUE} bytes in length"))
    else:
        errors += expressions.annotation(annotation["valueExpression"], f"{path}.valueExpression")
    return errors


def validate_mutating(obj: Object) -> list[FieldError]:
    """Validate a new MutatingAdmissionPolicy."""
    return _validate_mutating(obj, None) + reserved_name(obj)


def validate_mutating_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated MutatingAdmissionPolicy."""
    return _validate_mutating(new, old)


def _validate_mutating(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    expressions = Expressions(params=spec.get("paramKind") is not None, composed=True)
    errors = _common(spec, old, expressions, mutating=True)
    mutations, policy = spec.get("mutations") or [], spec.get("reinvocationPolicy")
    if not mutations:
        errors.append(field.required("spec.mutations", "mutations must contain at least one item"))
    for i, mutation in enumerate(mutations):
        errors += _mutation(mutation, f"spec.mutations[{i}]", expressions)
    if not policy:
        return [*errors, field.required("spec.reinvocationPolicy")]
    return errors + known(policy, frozenset({"Never", "IfNeeded"}), "spec.reinvocationPolicy")


def _mutation(mutation: Object, path: str, expressions: Expressions) -> list[FieldError]:
    kind = mutation.get("patchType") or ""
    if not kind:
        return [field.required(f"{path}.patchType")]
    if kind not in _PATCH_TYPES:
        return [field.not_supported(f"{path}.patchType", kind, frozenset(_PATCH_TYPES))]
    key = _PATCH_TYPES[kind]
    errors: list[FieldError] = []
    if mutation.get(key) is None:
        errors.append(field.required(f"{path}.{key}", f"must be specified when patchType is {kind}"))
    elif not (expression := (mutation[key].get("expression") or "").strip()):
        errors.append(field.required(f"{path}.{key}.expression"))
    else:
        check = expressions.json_patch if kind == "JSONPatch" else expressions.apply_configuration
        errors += check(expression, f"{path}.{key}.expression")
    others = [other for other in _PATCH_TYPES.values() if other != key and mutation.get(other) is not None]
    text = f"must not be specified when patchType is {kind}"
    return errors + [field.invalid(f"{path}.{other}", f"{{{other}}}", text) for other in others]


def validate_binding(obj: Object) -> list[FieldError]:
    """Validate a new ValidatingAdmissionPolicyBinding."""
    return _validating_binding(obj, reserved_name(obj))


def validate_binding_update(new: Object, _: Object) -> list[FieldError]:
    """Validate an updated ValidatingAdmissionPolicyBinding."""
    return _validating_binding(new, [])


def _validating_binding(obj: Object, reserved: list[FieldError]) -> list[FieldError]:
    """Validate the spec of a binding.

    The schema declares the required fields, so errors about missing ones come last, after those in `reserved`.
    """
    spec = obj.get("spec") or {}
    actions, path = spec.get("validationActions") or [], "spec.validationActions"
    errors = _binding(spec)
    repeated_indexes = repeated(actions)
    for i, action in enumerate(actions):
        errors += known(action, _ACTIONS, f"{path}[{i}]")
        errors += [field.duplicate(f"{path}[{i}]", action)] if i in repeated_indexes else []
    if {"Deny", "Warn"} <= set(actions):
        errors.append(field.invalid(path, actions, _BOTH))
    missing = [field.required(f"spec.{key}") for key in ("policyName", "validationActions") if not spec.get(key)]
    return errors + reserved + missing


def validate_mutating_binding(obj: Object) -> list[FieldError]:
    """Validate a new MutatingAdmissionPolicyBinding."""
    return validate_mutating_binding_update(obj, obj) + reserved_name(obj)


def validate_mutating_binding_update(new: Object, _: Object) -> list[FieldError]:
    """Validate an updated MutatingAdmissionPolicyBinding."""
    spec = new.get("spec") or {}
    missing = [] if spec.get("policyName") else [field.required("spec.policyName")]
    return missing + _binding(spec) + _mutable(spec.get("matchResources") or {}, "spec.matchResources")


def _binding(spec: Object) -> list[FieldError]:
    """Validate the spec fields that both kinds of binding have."""
    name, match = spec.get("policyName") or "", spec.get("matchResources")
    errors = complaints(is_dns1123_subdomain, name, "spec.policyName") if name else []
    if (reference := spec.get("paramRef")) is not None:
        errors += _param_ref(reference, "spec.paramRef")
    if match is not None:
        errors += match_resources(match, "spec.matchResources")
    return errors


def _param_ref(reference: Object, path: str) -> list[FieldError]:
    name, selector, action = reference.get("name") or "", reference.get("selector"), reference.get("parameterNotFoundAction")
    errors: list[FieldError] = []
    if name:
        errors += complaints(is_path_segment_name, name, f"{path}.name")
        errors += [field.forbidden(f"{path}.name", _EXCLUSIVE)] if selector is not None else []
    if selector is not None:
        errors += validate_label_selector(selector, f"{path}.selector")
        errors += [field.forbidden(f"{path}.selector", _EXCLUSIVE)] if name else []
    if not name and selector is None:
        errors.append(field.required(path, "one of name or selector must be specified"))
    at = f"{path}.parameterNotFoundAction"
    return errors + (known(action, ["Deny", "Allow"], at) if action else [field.required(at)])


def validate_status(new: Object, _: Object) -> list[FieldError]:
    """Validate the status of a ValidatingAdmissionPolicy: its type checking warnings and its conditions."""
    status = new.get("status") or {}
    errors: list[FieldError] = []
    for i, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path, reference = f"status.typeChecking.expressionWarnings[{i}]", (warning.get("fieldRef") or "").strip()
        if not warning.get("warning"):
            errors.append(field.required(f"{path}.warning"))
        if not reference:
            errors.append(field.required(f"{path}.fieldRef"))
        else:
            errors += _json_path(reference, f"{path}.fieldRef")
    return errors + conditions(status.get("conditions") or [], "status.conditions")


def _json_path(reference: str, path: str) -> list[FieldError]:
    try:
        parse_template(f"{{{reference}}}")
    except ValueError as error:
        return [field.invalid(path, reference, f"invalid JSONPath: {error}")]
    return []
