"""The list of the kinds of admissionregistration.k8s.io."""

from __future__ import annotations

from tetrapod.core.admissionregistration import (
    mutating_admission_policies,
    mutating_admission_policy_bindings,
    validating_admission_policies,
    validating_admission_policy_bindings,
    webhook_configurations,
)
from tetrapod.core.admissionregistration.policy_strategies import ParamAccess
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions(access: ParamAccess) -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group admissionregistration.k8s.io.

    Args:
        access: decides who may name the parameters of a policy.
    """
    return [
        mutating_admission_policies.definition(access),
        mutating_admission_policy_bindings.definition(access),
        webhook_configurations.definition("mutatingwebhookconfigurations"),
        validating_admission_policies.definition(access),
        validating_admission_policy_bindings.definition(access),
        webhook_configurations.definition("validatingwebhookconfigurations"),
    ]
