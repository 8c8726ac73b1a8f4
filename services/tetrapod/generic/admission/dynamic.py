"""The plugins that users configure: policies and webhooks. Every service has them, for what it serves itself.

In upstream's order (AllOrderedPlugins of pkg/kubeapiserver/options/plugins.go); each can be turned off by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.admission.policy.mutating import MutatingAdmissionPolicy
from tetrapod.generic.admission.policy.validating import ValidatingAdmissionPolicy
from tetrapod.generic.admission.surroundings import Surroundings
from tetrapod.generic.admission.webhook.mutating import MutatingAdmissionWebhook
from tetrapod.generic.admission.webhook.validating import ValidatingAdmissionWebhook

Make = Callable[[Surroundings], Plugin]

DYNAMIC: Final[dict[str, Make]] = {
    "MutatingAdmissionPolicy": MutatingAdmissionPolicy,
    "MutatingAdmissionWebhook": MutatingAdmissionWebhook,
    "ValidatingAdmissionPolicy": ValidatingAdmissionPolicy,
    "ValidatingAdmissionWebhook": ValidatingAdmissionWebhook,
}


def standard_plugins(surroundings: Surroundings, disabled: Sequence[str]) -> list[Plugin]:
    """What a service has that has no plugins of its own."""
    made: list[Plugin] = [] if "NamespaceLifecycle" in disabled else [NamespaceLifecycle(surroundings.storages)]
    return made + [make(surroundings) for name, make in DYNAMIC.items() if name not in disabled]
