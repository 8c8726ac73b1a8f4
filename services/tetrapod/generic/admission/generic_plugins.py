"""The generic plugins, for objects of every kind, in particular those that users configure: policies and webhooks.

Every service has them for its own resources. They are in upstream's order (pkg/kubeapiserver/options/plugins.go,
AllOrderedPlugins), and each can be disabled by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from tetrapod.generic.admission.configuration import Unconfigurable
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.admission.plugins.namespace_exists import NamespaceExists
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.admission.plugins.owner_references import OwnerReferencesPermissionEnforcement
from tetrapod.generic.admission.policy.mutating import MutatingAdmissionPolicy
from tetrapod.generic.admission.policy.validating import ValidatingAdmissionPolicy
from tetrapod.generic.admission.webhook.mutating import MutatingAdmissionWebhook
from tetrapod.generic.admission.webhook.validating import ValidatingAdmissionWebhook
from tetrapod.machinery.golang.quoting import go_quote

Make = Callable[[PluginDependencies], Plugin]

DYNAMIC: Final[dict[str, Make]] = {
    "MutatingAdmissionPolicy": MutatingAdmissionPolicy,
    "MutatingAdmissionWebhook": MutatingAdmissionWebhook,
    "ValidatingAdmissionPolicy": ValidatingAdmissionPolicy,
    "ValidatingAdmissionWebhook": ValidatingAdmissionWebhook,
}


class UnusablePlugins(ValueError):
    """A plugin's configuration is invalid, so that the server cannot start; the text is upstream's."""


def _always_deny(_: PluginDependencies) -> Plugin:
    from tetrapod.generic.admission.plugins.always_deny import AlwaysDeny

    return AlwaysDeny()


def _namespace_auto_provision(dependencies: PluginDependencies) -> Plugin:
    from tetrapod.generic.admission.plugins.namespace_provision import NamespaceAutoProvision

    return NamespaceAutoProvision(dependencies.storages, dependencies.client)


def _resource_quota(dependencies: PluginDependencies) -> Plugin:
    from tetrapod.generic.admission.plugins.resource_quota import ResourceQuota

    return ResourceQuota(dependencies.storages)


GENERAL: Final[dict[str, Make]] = {
    "NamespaceAutoProvision": _namespace_auto_provision,
    "NamespaceLifecycle": lambda s: NamespaceLifecycle(s.storages),
    "NamespaceExists": lambda s: NamespaceExists(s.storages),
    "OwnerReferencesPermissionEnforcement": lambda s: OwnerReferencesPermissionEnforcement(s.authorizer, s.client),
    **DYNAMIC,
    "ResourceQuota": _resource_quota,
    "AlwaysDeny": _always_deny,
}
"""The plugins for objects of every kind, in upstream's order."""
GENERAL_OFF_BY_DEFAULT: Final = frozenset(
    {"AlwaysDeny", "NamespaceAutoProvision", "NamespaceExists", "OwnerReferencesPermissionEnforcement"}
)


def select_plugins(
    table: Mapping[str, Make],
    off: Collection[str],
    dependencies: PluginDependencies,
    enabled: Collection[str],
    disabled: Collection[str],
) -> list[Plugin]:
    """Create the plugins of `table`, in its order: those that are enabled or not `off` by default, and not disabled.

    Args:
        table: functions that create a plugin, by its name.
        off: the names of plugins that are not created by default.
        enabled: names from --enable-admission-plugins; names that are not in the table are ignored.
        disabled: names from --disable-admission-plugins; they take precedence.

    Raises:
        UnusablePlugins: the configuration of a plugin is invalid.
    """
    names = (table.keys() - set(off) | set(enabled)) - set(disabled)
    return [_create(name, make, dependencies) for name, make in table.items() if name in names]


def _create(name: str, make: Make, dependencies: PluginDependencies) -> Plugin:
    try:
        return make(dependencies)
    except Unconfigurable as error:
        raise UnusablePlugins(str(error)) from None
    except ValueError as error:
        raise UnusablePlugins(f"couldn't init admission plugin {go_quote(name)}: {error}") from None


def standard_plugins(
    dependencies: PluginDependencies, enabled: Collection[str], disabled: Collection[str]
) -> list[Plugin]:
    """Create the plugins of a service that has only the generic ones. Names of other services' plugins are ignored.

    Args:
        enabled: names from --enable-admission-plugins.
        disabled: names from --disable-admission-plugins; they take precedence.

    Raises:
        UnusablePlugins: the configuration of a plugin is invalid.
    """
    return select_plugins(GENERAL, GENERAL_OFF_BY_DEFAULT, dependencies, enabled, disabled)
