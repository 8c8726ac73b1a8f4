"""The plugins that are for objects of every kind, above all those that users configure: policies and webhooks. Every service has them, for
what it serves itself.

In upstream's order (AllOrderedPlugins of pkg/kubeapiserver/options/plugins.go); each can be turned off by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugins.namespace_exists import NamespaceExists
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.admission.plugins.owner_references import OwnerReferencesPermissionEnforcement
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


GENERAL: Final[dict[str, Make]] = {
    "NamespaceLifecycle": lambda s: NamespaceLifecycle(s.storages),
    "NamespaceExists": lambda s: NamespaceExists(s.storages),
    "OwnerReferencesPermissionEnforcement": lambda s: OwnerReferencesPermissionEnforcement(s.authorizer, s.client),
    **DYNAMIC,
}
"""Those that are for objects of every kind, in upstream's order."""
GENERAL_OFF_BY_DEFAULT: Final = frozenset({"NamespaceExists", "OwnerReferencesPermissionEnforcement"})


def chosen(
    table: Mapping[str, Make], off: Collection[str], surroundings: Surroundings, enabled: Collection[str], disabled: Collection[str]
) -> list[Plugin]:
    """Those of a table that are not `off` by default, or enabled, but not disabled, in its order; other names are passed over."""
    wanted = (table.keys() - set(off) | set(enabled)) - set(disabled)
    return [make(surroundings) for name, make in table.items() if name in wanted]


def standard_plugins(surroundings: Surroundings, enabled: Collection[str], disabled: Collection[str]) -> list[Plugin]:
    """What a service has that has no plugins of its own; what else is named is for others."""
    return chosen(GENERAL, GENERAL_OFF_BY_DEFAULT, surroundings, enabled, disabled)
