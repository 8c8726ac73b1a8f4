"""Resource definitions of admissionregistration.k8s.io/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.defaults import cluster as defaults
from tetrapod.core.strategies.admission_policies import GROUP, BindingStrategy, ParamAccess, PolicyStrategy, StaticNames
from tetrapod.core.strategies.simple import status_of
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


def definitions(access: ParamAccess) -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [*_mutating(access), *_validating(access)]


def _mutating(access: ParamAccess) -> list[ResourceDefinition]:
    policy = PolicyStrategy(
        access,
        "MutatingAdmissionPolicy",
        default=defaults.default_admission_policy,
        validate=policies.validate_mutating,
        whole_update=policies.validate_mutating_update,
    )
    binding = BindingStrategy(
        access,
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        default=defaults.default_admission_policy_binding,
        validate=policies.validate_mutating_binding,
        whole_update=policies.validate_mutating_binding_update,
    )
    return [
        builtin(GROUP, "mutatingadmissionpolicies", policy, table=tables.MUTATING_ADMISSION_POLICIES),
        builtin(GROUP, "mutatingadmissionpolicybindings", binding, table=tables.ADMISSION_POLICY_BINDINGS),
        _webhooks("mutatingwebhookconfigurations"),
    ]


def _validating(access: ParamAccess) -> list[ResourceDefinition]:
    policy = PolicyStrategy(
        access,
        "ValidatingAdmissionPolicy",
        default=defaults.default_admission_policy,
        validate=policies.validate,
        whole_update=policies.validate_update,
        status=True,
    )
    binding = BindingStrategy(
        access,
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        default=defaults.default_admission_policy_binding,
        validate=policies.validate_binding,
        whole_update=policies.validate_binding_update,
    )
    status = status_of(policy, keep_metadata=ALL_METADATA, validate=policies.validate_status)
    return [
        builtin(
            GROUP,
            "validatingadmissionpolicies",
            policy,
            table=tables.VALIDATING_ADMISSION_POLICIES,
            subresources={"status": status},
        ),
        builtin(GROUP, "validatingadmissionpolicybindings", binding, table=tables.ADMISSION_POLICY_BINDINGS),
        _webhooks("validatingwebhookconfigurations"),
    ]


def _webhooks(resource: str) -> ResourceDefinition:
    return replace(builtin(GROUP, resource, WebhooksStrategy(), table=tables.WEBHOOK_CONFIGURATIONS), store=WebhookStore)
