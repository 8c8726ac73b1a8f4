"""Resource definitions of admissionregistration.k8s.io/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.defaults import cluster as defaults
from tetrapod.core.kind_strategy import status_strategy
from tetrapod.core.strategies.admission_policies import GROUP, BindingStrategy, ParamAccess, PolicyStrategy, StaticNames
from tetrapod.core.strategies.webhook_store import WebhookStore
from tetrapod.core.tables import policies as tables
from tetrapod.core.validation import admission_policies as policies
from tetrapod.core.validation import webhooks
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA
from tetrapod.machinery.gvk import Object


class WebhooksStrategy(StaticNames):
    """The strategy of both webhook configurations."""

    distinguishes_empty = True

    def __init__(self) -> None:
        super().__init__(
            default=defaults.default_webhooks,
            validate=webhooks.validate,
            whole_update=webhooks.validate_update,
            generation=["webhooks"],
            unconditional_update=False,
        )

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [*super().warnings_on_create(ctx, obj), *webhooks.warnings(obj)]

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return [*super().warnings_on_update(ctx, new, old), *webhooks.warnings(new)]


def mutating_policies(access: ParamAccess) -> ResourceDefinition:
    """Return the definition of MutatingAdmissionPolicies."""
    strategy = PolicyStrategy(
        access,
        "MutatingAdmissionPolicy",
        default=defaults.default_admission_policy,
        validate=policies.validate_mutating,
        whole_update=policies.validate_mutating_update,
    )
    return builtin(GROUP, "mutatingadmissionpolicies", strategy, table=tables.MUTATING_ADMISSION_POLICIES)


def mutating_policy_bindings(access: ParamAccess) -> ResourceDefinition:
    """Return the definition of MutatingAdmissionPolicyBindings."""
    strategy = BindingStrategy(
        access,
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        default=defaults.default_admission_policy_binding,
        validate=policies.validate_mutating_binding,
        whole_update=policies.validate_mutating_binding_update,
    )
    return builtin(GROUP, "mutatingadmissionpolicybindings", strategy, table=tables.ADMISSION_POLICY_BINDINGS)


def validating_policies(access: ParamAccess) -> ResourceDefinition:
    """Return the definition of ValidatingAdmissionPolicies."""
    strategy = PolicyStrategy(
        access,
        "ValidatingAdmissionPolicy",
        default=defaults.default_admission_policy,
        validate=policies.validate,
        whole_update=policies.validate_update,
        status=True,
    )
    status = status_strategy(strategy, keep_metadata=ALL_METADATA, validate=policies.validate_status)
    return builtin(
        GROUP,
        "validatingadmissionpolicies",
        strategy,
        table=tables.VALIDATING_ADMISSION_POLICIES,
        subresources={"status": status},
    )


def validating_policy_bindings(access: ParamAccess) -> ResourceDefinition:
    """Return the definition of ValidatingAdmissionPolicyBindings."""
    strategy = BindingStrategy(
        access,
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        default=defaults.default_admission_policy_binding,
        validate=policies.validate_binding,
        whole_update=policies.validate_binding_update,
    )
    return builtin(GROUP, "validatingadmissionpolicybindings", strategy, table=tables.ADMISSION_POLICY_BINDINGS)


def webhook_configurations(resource: str) -> ResourceDefinition:
    """Return the definition of MutatingWebhookConfigurations or ValidatingWebhookConfigurations."""
    return replace(builtin(GROUP, resource, WebhooksStrategy(), table=tables.WEBHOOK_CONFIGURATIONS), store=WebhookStore)


def definitions(access: ParamAccess) -> list[ResourceDefinition]:
    """Return the definitions of the group.

    Args:
        access: decides who may name the parameters of a policy.
    """
    return [
        mutating_policies(access),
        mutating_policy_bindings(access),
        webhook_configurations("mutatingwebhookconfigurations"),
        validating_policies(access),
        validating_policy_bindings(access),
        webhook_configurations("validatingwebhookconfigurations"),
    ]
