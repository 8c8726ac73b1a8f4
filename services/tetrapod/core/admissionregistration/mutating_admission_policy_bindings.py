"""The definition of MutatingAdmissionPolicyBindings, with their defaults and validation.

Upstream: pkg/registry/admissionregistration/mutatingadmissionpolicybinding and
pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from tetrapod.core.admissionregistration import shared_rules
from tetrapod.core.admissionregistration.policy_strategies import GROUP, BindingStrategy, ParamAccess
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object


def definition(access: ParamAccess) -> ResourceDefinition:
    """Return the resource definition of MutatingAdmissionPolicyBindings: versions, strategy, subresources and columns.

    Args:
        access: checks whether a user may refer to the parameters.
    """
    strategy = BindingStrategy(
        access,
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        defaults={
            "v1": shared_rules.set_binding_defaults,
            "v1beta1": shared_rules.set_binding_defaults,
            "v1alpha1": set_v1alpha1_defaults,
        },
        validator=validate,
    )
    return builtin(
        GROUP,
        "mutatingadmissionpolicybindings",
        strategy,
        versions=("v1", "v1beta1", "v1alpha1"),
        table=shared_rules.BINDING_TABLE,
    )


def set_v1alpha1_defaults(obj: Object) -> None:
    """Set the defaults of a v1alpha1 binding in place: those of later versions, and parameterNotFoundAction (Deny)."""
    shared_rules.set_binding_defaults(obj)
    reference = obj["spec"].get("paramRef")
    if reference is not None and reference.get("parameterNotFoundAction") is None:
        reference["parameterNotFoundAction"] = "Deny"


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a new or updated MutatingAdmissionPolicyBinding.

    policyName is required, paramRef and matchResources are valid, and no rule has the operation DELETE.
    """
    spec = obj.get("spec") or {}
    missing = [] if spec.get("policyName") else [field.required("spec.policyName")]
    return (
        missing
        + shared_rules.validate_binding_spec(spec)
        + shared_rules.validate_mutable(spec.get("matchResources") or {}, "spec.matchResources")
    )
