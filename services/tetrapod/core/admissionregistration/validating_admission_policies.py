"""The definition of ValidatingAdmissionPolicies, with their validation and table columns.

Upstream: pkg/registry/admissionregistration/validatingadmissionpolicy and pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admissionregistration import shared_rules
from tetrapod.core.admissionregistration.expressions import Expressions
from tetrapod.core.admissionregistration.policy_strategies import GROUP, ParamAccess, PolicyStrategy
from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.names import known, qualified_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.jsonpath_parser import parse_template
from tetrapod.machinery.table import Column, TableConvertor

_REASONS: Final = frozenset({"Forbidden", "Invalid", "RequestEntityTooLarge"})
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"
_MOST_ANNOTATIONS: Final = 20
_LONGEST_VALUE: Final = 5 * 1024

TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Validations", "integer"),
        Column("ParamKind"),
        AGE,
    ),
    lambda obj: [name_of(obj), len(spec_of(obj).get("validations") or []), shared_rules.param_kind_text(obj), age(obj)],
)


def definition(access: ParamAccess) -> ResourceDefinition:
    """Return the resource definition of ValidatingAdmissionPolicies: versions, strategy, subresources and columns.

    Args:
        access: checks whether a user may refer to a paramKind.
    """
    strategy = PolicyStrategy(
        access,
        "ValidatingAdmissionPolicy",
        defaults=shared_rules.set_policy_defaults,
        validator=validate,
        whole_update_validator=validate,
        has_status=True,
    )
    status = StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status)
    return builtin(
        GROUP,
        "validatingadmissionpolicies",
        strategy,
        table=TABLE,
        subresources={"status": status},
    )


def validate(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a ValidatingAdmissionPolicy and compile its expressions.

    The rules are those of `validate_policy_spec`. It has at least one validation or audit annotation, and not more than
    20 audit annotations, whose keys are unique.

    Args:
        obj: the policy.
        old: the stored policy that it replaces; None for a new one.
    """
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name") or ""
    expressions = Expressions(params=spec.get("paramKind") is not None, composed=bool(spec.get("variables")))
    errors = shared_rules.validate_policy_spec(spec, old, expressions)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        return [
            *errors,
            field.required("spec.validations", _NOTHING),
            field.required("spec.auditAnnotations", _NOTHING),
        ]
    for i, validation in enumerate(validations):
        errors += _validation(validation, f"spec.validations[{i}]", expressions)
    if len(annotations) > _MOST_ANNOTATIONS:
        shown = [
            {"Key": annotation_spec.get("key") or "", "ValueExpression": annotation_spec.get("valueExpression") or ""}
            for annotation_spec in annotations
        ]
        errors.append(
            field.invalid(
                "spec.auditAnnotations", shown, f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
            )
        )
    keys = [a.get("key") or "" for a in annotations]
    repeated_indexes = repeated(keys)
    for i, annotation in enumerate(annotations):
        errors += _annotation(annotation, name, f"spec.auditAnnotations[{i}]", expressions)
        if i in repeated_indexes:
            errors.append(field.duplicate(f"spec.auditAnnotations[{i}].key", keys[i]))
    return errors


def _validation(validation: Object, path: str, expressions: Expressions) -> list[FieldError]:
    message, computed, reason = (
        validation.get("message") or "",
        validation.get("messageExpression") or "",
        validation.get("reason"),
    )
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


def validate_status(new: Object, _: Object) -> list[FieldError]:
    """Validate the status of a ValidatingAdmissionPolicy.

    Each type checking warning has a text and a valid fieldRef; conditions follow the rules of all kinds. The stored
    object is not used.
    """
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
