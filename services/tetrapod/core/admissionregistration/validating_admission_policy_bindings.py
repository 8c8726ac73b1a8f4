"""ValidatingAdmissionPolicyBindings.

Upstream: pkg/registry/admissionregistration/validatingadmissionpolicybinding and
pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admissionregistration import shared_rules
from tetrapod.core.admissionregistration.match_rules import reserved_name
from tetrapod.core.admissionregistration.policy_strategies import GROUP, BindingStrategy, ParamAccess
from tetrapod.core.validation.names import known
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_ACTIONS: Final = frozenset({"Deny", "Warn", "Audit"})
_BOTH: Final = (
    "must not contain both Deny and Warn"
    " (repeating the same validation failure information in the API response and headers serves no purpose)"
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
        defaults=shared_rules.set_binding_defaults,
        validator=validate,
        whole_update_validator=validate_update,
    )
    return builtin(GROUP, "validatingadmissionpolicybindings", strategy, table=shared_rules.BINDING_TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate the name and the spec of a new ValidatingAdmissionPolicyBinding."""
    return _validating_binding(obj, reserved_name(obj))


def validate_update(new: Object, _: Object) -> list[FieldError]:
    """Validate an updated ValidatingAdmissionPolicyBinding.

    A reserved name is allowed; the stored object is not used.
    """
    return _validating_binding(new, [])


def _validating_binding(obj: Object, reserved: list[FieldError]) -> list[FieldError]:
    """Validate the spec of a binding.

    Args:
        reserved: errors about the name. Errors about missing fields come after them, because the schema declares them.
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
    missing = [field.required(f"spec.{key}") for key in ("policyName", "validationActions") if not spec.get(key)]
    return errors + reserved + missing
