"""admissionregistration.k8s.io/v1."""

from __future__ import annotations

from tetrapod.core.defaults import cluster as defaults
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import policies as tables
from tetrapod.core.validation import admission_policies as policies
from tetrapod.core.validation import webhooks
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object

GROUP = "admissionregistration.k8s.io"


class WebhooksStrategy(KindStrategy):
    """Labels and annotations count as a change of generation too."""

    def __init__(self) -> None:
        super().__init__(
            default=defaults.default_webhooks,
            validate=webhooks.validate,
            whole_update=webhooks.validate_update,
            generation=["webhooks"],
        )

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or any(
            new["metadata"].get(key) != old["metadata"].get(key) for key in ("labels", "annotations")
        )


def definitions() -> list[ResourceDefinition]:
    return [*_mutating(), *_validating()]


def _mutating() -> list[ResourceDefinition]:
    policy = KindStrategy(default=defaults.default_admission_policy, validate=policies.validate_mutating, generation=["spec"])
    binding = KindStrategy(
        default=defaults.default_admission_policy_binding, validate=policies.validate_mutating_binding, generation=["spec"]
    )
    return [
        builtin(GROUP, "mutatingadmissionpolicies", policy, table=tables.MUTATING_ADMISSION_POLICIES),
        builtin(GROUP, "mutatingadmissionpolicybindings", binding, table=tables.ADMISSION_POLICY_BINDINGS),
        builtin(GROUP, "mutatingwebhookconfigurations", WebhooksStrategy(), table=tables.WEBHOOK_CONFIGURATIONS),
    ]


def _validating() -> list[ResourceDefinition]:
    policy = KindStrategy(default=defaults.default_admission_policy, validate=policies.validate, status=True, generation=["spec"])
    binding = KindStrategy(default=defaults.default_admission_policy_binding, validate=policies.validate_binding, generation=["spec"])
    return [
        builtin(
            GROUP,
            "validatingadmissionpolicies",
            policy,
            table=tables.VALIDATING_ADMISSION_POLICIES,
            subresources={"status": status_of(policy)},
        ),
        builtin(GROUP, "validatingadmissionpolicybindings", binding, table=tables.ADMISSION_POLICY_BINDINGS),
        builtin(GROUP, "validatingwebhookconfigurations", WebhooksStrategy(), table=tables.WEBHOOK_CONFIGURATIONS),
    ]
