"""The admission plugins that the flags choose."""

from __future__ import annotations

import click

from tetrapod.cli.options import Options
from tetrapod.core.admission.plugins import UnusablePlugins, plugins
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.surroundings import Surroundings


def chosen_admission(surroundings: Surroundings, options: Options) -> Chain:
    """
    Raises:
        click.ClickException: --enable-admission-plugins or --disable-admission-plugins name what there is not.
    """
    try:
        return Chain(plugins(surroundings, options.enable_admission_plugins, options.disable_admission_plugins))
    except UnusablePlugins as error:
        raise click.ClickException(str(error)) from None
