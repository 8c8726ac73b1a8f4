"""The admission plugins of a service that has none of its own, and what a file configures for plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import click

from tetrapod.apps.options.options import Options
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.configuration import Unconfigurable
from tetrapod.generic.admission.dynamic import UnusablePlugins, standard_plugins
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.surroundings import PluginDependencies

Choose: TypeAlias = Callable[[PluginDependencies, Sequence[str], Sequence[str]], list[Plugin]]
"""The plugins of a service, of which some are turned on and some off."""


def general_admission(dependencies: PluginDependencies, options: Options) -> Chain:
    """Return the admission chain of a service other than core.

    Raises:
        click.ClickException: the configuration of a plugin is invalid.
    """
    return configured_admission(standard_plugins, dependencies, options)


def configured_admission(choose: Choose, dependencies: PluginDependencies, options: Options) -> Chain:
    """With what --admission-control-config-file says.

    Raises:
        click.ClickException: the file cannot be used, or the configuration of a plugin.
    """
    try:
        configured = _with_configuration(dependencies, options.admission.control_config_file)
        return Chain(choose(configured, options.admission.enable_plugins, options.admission.disable_plugins))
    except (Unconfigurable, UnusablePlugins) as error:
        raise click.ClickException(f"failed to apply admission: {error}") from None


def _with_configuration(dependencies: PluginDependencies, path: str) -> PluginDependencies:
    """Create the configured plugins.

    Raises:
        Unconfigurable: the configuration file is invalid.
    """
    if not path:
        return dependencies
    from tetrapod.generic.admission.configuration_file import read_configuration

    return replace(dependencies, configuration=read_configuration(path))
