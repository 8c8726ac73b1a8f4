"""The definition of ValidatingAdmissionPolicyBindings, with their validation.

Upstream: pkg/registry/admissionregistration/validatingadmissionpolicybinding and
pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admissionregistration import shared_rules
from tetrapod.core.admissionregistration.policy_strategies import GROUP, BindingStrategy, ParamAccess
from tetrapod.core.validation.names import known
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten, Text
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_ACTIONS: Final = frozenset({"Deny", "Warn", "Audit"})
_BOTH: Final = (
    "must not contain both Deny and Warn"
    " (repeating the same validation failure information in the API response and headers serves no purpose)"
)

_FORM: Final = HandWritten(
    "spec.policyName",
    "spec.paramRef",
    "spec.matchResources",
    "spec.validationActions",
    "spec.validationActions!",
    texts={"FieldValueRequired spec.validationActions": Text("at least one validation action is required", former="")},
)


def definition(access: ParamAccess) -> ResourceDefinition:
    """Return the resource definition of ValidatingAdmissionPolicyBindings: versions, strategy and columns.

    Args:
        access: checks whether a user may refer to the parameters.
    """
    strategy = BindingStrategy(
        access,
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        hand_written=_FORM,
        defaults=shared_rules.set_binding_defaults,
        validator=validate_spec,
        declared_validator=validate_required,
    )
    return builtin(GROUP, "validatingadmissionpolicybindings", strategy, table=shared_rules.BINDING_TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a ValidatingAdmissionPolicyBinding that was read from a manifest file (manifests.py).

    Upstream validates it without the declarations of the schema, so the errors of missing fields have other texts and
    field paths.
    """
    spec = obj.get("spec") or {}
    missing = [] if spec.get("policyName") else [field.required("spec.policyName")]
    errors = missing + validate_spec(obj)
    if not spec.get("validationActions"):
        errors.append(field.required("spec.validationActions", "at least one validation action is required"))
    return errors


def validate_spec(obj: Object) -> list[FieldError]:
    """Validate the fields of the spec that are set: policyName, paramRef, matchResources and validationActions.

    Actions are known and unique, and do not include both Deny and Warn.
    """
    spec = obj.get("spec") or {}
    actions, path = spec.get("validationActions") or [], "spec.validationActions"
    errors = shared_rules.validate_binding_spec(spec)
    repeated_indexes = repeated(actions)
    for i, action in enumerate(actions):
        errors += known(action, _ACTIONS, f"{path}[{i}]")
        errors += [field.duplicate(f"{path}[{i}]", action)] if i in repeated_indexes else []
    if {"Deny", "Warn"} <= set(actions):
        errors.append(field.invalid(path, actions, _BOTH))
    return errors


def validate_required(obj: Object) -> list[FieldError]:
    """Return an error for each field that the schema requires and that is not set: policyName, validationActions."""
    spec = obj.get("spec") or {}
    return [field.required(f"spec.{key}") for key in ("policyName", "validationActions") if not spec.get(key)]
