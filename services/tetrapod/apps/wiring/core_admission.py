"""The admission chain of core, and of all services in one process, with the plugins of built-in kinds."""

from __future__ import annotations

import click

from tetrapod.apps.options.kubernetes import AdmissionFlags
from tetrapod.apps.wiring.admission import build_admission
from tetrapod.core.admission.plugins import plugin_flag_errors, plugins
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies


def build_core_admission(flags: AdmissionFlags, dependencies: PluginDependencies) -> Chain:
    """Return the admission chain.

    Raises:
        click.ClickException: --enable-admission-plugins or --disable-admission-plugins contain an unknown plugin, or a
            plugin's configuration is invalid.
    """
    if errors := plugin_flag_errors(flags.enable_plugins, flags.disable_plugins):
        raise click.ClickException("; ".join(errors))
    return build_admission(flags, dependencies, plugins)
