"""The admission chain of core, and of all services in one process, as flags configure it."""

from __future__ import annotations

import click

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.admission import configured_admission
from tetrapod.core.admission.plugins import complaints, plugins
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.surroundings import PluginDependencies


def chosen_admission(dependencies: PluginDependencies, options: Options) -> Chain:
    """Return the admission chain.

    Raises:
        click.ClickException: --enable-admission-plugins or --disable-admission-plugins contain an unknown plugin, or a plugin's
            configuration is invalid.
    """
    if problems := complaints(options.admission.enable_plugins, options.admission.disable_plugins):
        raise click.ClickException("; ".join(problems))
    return configured_admission(plugins, dependencies, options)
