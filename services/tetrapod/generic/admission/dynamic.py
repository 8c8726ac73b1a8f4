"""The plugins that are for objects of every kind, above all those that users configure: policies and webhooks. Every service has them, for
what it serves itself.

In upstream's order (AllOrderedPlugins of pkg/kubeapiserver/options/plugins.go); each can be turned off by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from tetrapod.generic.admission.configuration import Unconfigurable
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugins.namespace_exists import NamespaceExists
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.admission.plugins.owner_references import OwnerReferencesPermissionEnforcement
from tetrapod.generic.admission.policy.mutating import MutatingAdmissionPolicy
from tetrapod.generic.admission.policy.validating import ValidatingAdmissionPolicy
from tetrapod.generic.admission.surroundings import Surroundings
from tetrapod.generic.admission.webhook.mutating import MutatingAdmissionWebhook
from tetrapod.generic.admission.webhook.validating import ValidatingAdmissionWebhook
from tetrapod.machinery.field import go_quote

Make = Callable[[Surroundings], Plugin]

DYNAMIC: Final[dict[str, Make]] = {
    "MutatingAdmissionPolicy": MutatingAdmissionPolicy,
    "MutatingAdmissionWebhook": MutatingAdmissionWebhook,
    "ValidatingAdmissionPolicy": ValidatingAdmissionPolicy,
    "ValidatingAdmissionWebhook": ValidatingAdmissionWebhook,
}


class UnusablePlugins(ValueError):
    """A plugin is not configured as it must be; the text is upstream's."""


def _always_deny(_: Surroundings) -> Plugin:
    from tetrapod.generic.admission.plugins.always_deny import AlwaysDeny

    return AlwaysDeny()


def _namespace_auto_provision(surroundings: Surroundings) -> Plugin:
    from tetrapod.generic.admission.plugins.namespace_provision import NamespaceAutoProvision

    return NamespaceAutoProvision(surroundings.storages, surroundings.client)


def _resource_quota(surroundings: Surroundings) -> Plugin:
    from tetrapod.generic.admission.plugins.resource_quota import ResourceQuota

    return ResourceQuota(surroundings.storages)


GENERAL: Final[dict[str, Make]] = {
    "NamespaceAutoProvision": _namespace_auto_provision,
    "NamespaceLifecycle": lambda s: NamespaceLifecycle(s.storages),
    "NamespaceExists": lambda s: NamespaceExists(s.storages),
    "OwnerReferencesPermissionEnforcement": lambda s: OwnerReferencesPermissionEnforcement(s.authorizer, s.client),
    **DYNAMIC,
    "ResourceQuota": _resource_quota,
    "AlwaysDeny": _always_deny,
}
"""Those that are for objects of every kind, in upstream's order."""
GENERAL_OFF_BY_DEFAULT: Final = frozenset(
    {"AlwaysDeny", "NamespaceAutoProvision", "NamespaceExists", "OwnerReferencesPermissionEnforcement"}
)


def chosen(
    table: Mapping[str, Make], off: Collection[str], surroundings: Surroundings, enabled: Collection[str], disabled: Collection[str]
) -> list[Plugin]:
    """Those of a table that are not `off` by default, or enabled, but not disabled, in its order; other names are passed over.

    Raises:
        UnusablePlugins: what is configured for one is wrong.
    """
    wanted = (table.keys() - set(off) | set(enabled)) - set(disabled)
    return [_made(name, make, surroundings) for name, make in table.items() if name in wanted]


def _made(name: str, make: Make, surroundings: Surroundings) -> Plugin:
    try:
        return make(surroundings)
    except Unconfigurable as error:
        raise UnusablePlugins(str(error)) from None
    except ValueError as error:
        raise UnusablePlugins(f"couldn't init admission plugin {go_quote(name)}: {error}") from None


def standard_plugins(surroundings: Surroundings, enabled: Collection[str], disabled: Collection[str]) -> list[Plugin]:
    """What a service has that has no plugins of its own; what else is named is for others.

    Raises:
        UnusablePlugins
    """
    return chosen(GENERAL, GENERAL_OFF_BY_DEFAULT, surroundings, enabled, disabled)
