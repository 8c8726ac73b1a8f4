"""admissionregistration.k8s.io/v1."""

from __future__ import annotations

from tetrapod.core.defaults import cluster as defaults
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import policies as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object

GROUP = "admissionregistration.k8s.io"


class WebhooksStrategy(KindStrategy):
    """Labels and annotations count as a change of generation too."""

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or any(
            new["metadata"].get(key) != old["metadata"].get(key) for key in ("labels", "annotations")
        )


def definitions() -> list[ResourceDefinition]:
    policy = KindStrategy(default=defaults.default_admission_policy, status=True, generation=["spec"])
    binding = KindStrategy(default=defaults.default_admission_policy_binding, generation=["spec"])
    return [
        builtin(
            GROUP,
            "mutatingadmissionpolicies",
            KindStrategy(default=defaults.default_admission_policy, generation=["spec"]),
            table=tables.MUTATING_ADMISSION_POLICIES,
        ),
        builtin(GROUP, "mutatingadmissionpolicybindings", binding, table=tables.ADMISSION_POLICY_BINDINGS),
        builtin(
            GROUP,
            "mutatingwebhookconfigurations",
            WebhooksStrategy(default=defaults.default_webhooks, generation=["webhooks"]),
            table=tables.WEBHOOK_CONFIGURATIONS,
        ),
        builtin(
            GROUP,
            "validatingadmissionpolicies",
            policy,
            table=tables.VALIDATING_ADMISSION_POLICIES,
            subresources={"status": status_of(policy)},
        ),
        builtin(
            GROUP,
            "validatingadmissionpolicybindings",
            KindStrategy(default=defaults.default_admission_policy_binding, generation=["spec"]),
            table=tables.ADMISSION_POLICY_BINDINGS,
        ),
        builtin(
            GROUP,
            "validatingwebhookconfigurations",
            WebhooksStrategy(default=defaults.default_webhooks, generation=["webhooks"]),
            table=tables.WEBHOOK_CONFIGURATIONS,
        ),
    ]
