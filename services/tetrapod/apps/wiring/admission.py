"""The admission chain of a service, as the flags configure it, and the webhook client of a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import click

from tetrapod.apps.options.kubernetes import AdmissionFlags
from tetrapod.apps.options.options import Options
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.configuration import Unconfigurable
from tetrapod.generic.admission.generic_plugins import UnusablePlugins, standard_plugins
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.egress.selector import CLUSTER, CONTROL_PLANE, EgressSelector
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.services import StorageServiceResolver

PluginFactory: TypeAlias = Callable[[PluginDependencies, Sequence[str], Sequence[str]], list[Plugin]]
"""Called with the dependencies and with the names of enabled and of disabled plugins; returns the plugins in order."""


def build_admission(
    flags: AdmissionFlags, dependencies: PluginDependencies, factory: PluginFactory = standard_plugins
) -> Chain:
    """Return the admission chain.

    Args:
        flags: the flags of admission.
        dependencies: the objects that plugins use.
        factory: creates the plugins; by default those that every service has.

    Raises:
        click.ClickException: --admission-control-config-file or the configuration of a plugin is invalid.
    """
    try:
        if flags.control_config_file:
            from tetrapod.core.admissionregistration.manifests import load_manifests
            from tetrapod.generic.admission.configuration_file import read_configuration

            configuration = read_configuration(flags.control_config_file)
            dependencies = replace(dependencies, configuration=configuration, load_manifests=load_manifests)
        return Chain(factory(dependencies, flags.enable_plugins, flags.disable_plugins))
    except (Unconfigurable, UnusablePlugins) as error:
        raise click.ClickException(f"failed to apply admission: {error}") from None


def build_webhook_client(
    options: Options, storages: StorageFactory, lifecycle: Lifecycle, egress: EgressSelector
) -> WebhookClient:
    """Return a new client for webhooks of admission and conversion, which is closed at shutdown."""
    client = WebhookClient(
        StorageServiceResolver(storages, by_endpoints=options.aggregation.enable_routing),
        url_dialer=egress.lookup(CONTROL_PLANE),
        service_dialer=egress.lookup(CLUSTER),
    )
    lifecycle.on_shutdown("webhooks", client.close)
    return client
