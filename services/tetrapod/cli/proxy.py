"""`tetrapod proxy`: a kube-proxy in iptables mode (docs/how-to/proxy.md)."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tetrapod.apps.options.flag import declared_flags, format_value, with_values
from tetrapod.cli.flags import FlagCommand, flag_values
from tetrapod.cli.proxy_flags import ProxyFlags, configuration_of, with_flags

if TYPE_CHECKING:
    from tetrapod.kube_proxy.configuration import Configuration


class _ProxyCommand(FlagCommand):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, declared=lambda: list(declared_flags(ProxyFlags())), **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"-{arg}" if arg.startswith("-v=") else arg for arg in args])


@click.command("proxy", cls=_ProxyCommand)
def proxy(**values: Any) -> None:
    """Run a kube-proxy in iptables mode on a node.

    It turns Services and EndpointSlices into rules of iptables. The flags are those of kube-proxy. It needs root, and
    the programs of iptables.
    """
    context = click.get_current_context()
    given = {
        name.replace("_", "-") for name in values if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    flags = with_values(ProxyFlags(), flag_values([flag for flag, _ in declared_flags(ProxyFlags())], values))
    sys.exit(_run(flags, given))


def _run(flags: ProxyFlags, given: Collection[str]) -> int:
    """Run what the flags say, and return the exit code. Errors are printed in one line."""
    if sys.platform != "linux":
        click.echo("Error: tetrapod proxy changes the packet filters of Linux, and runs on Linux only", err=True)
        return 1

    from tetrapod.generic.lifecycle import Unavailable
    from tetrapod.generic.observability.logs import configure
    from tetrapod.generic.scheduling import event_loop
    from tetrapod.kube_proxy import configuration_file
    from tetrapod.kube_proxy.cleanup import clean_up
    from tetrapod.kube_proxy.node import NodeChanged
    from tetrapod.kube_proxy.program import Start, run
    from tetrapod.kube_proxy.validation import check

    try:
        given_configuration = _complete(flags, given)
        configuration = given_configuration.completed()
        configure(configuration.log_format, configuration.verbosity)
        try:
            check(configuration)
        except ValueError as error:
            raise ValueError(f"failed validate: {error}") from None
        if flags.write_config_to:
            configuration_file.write(flags.write_config_to, configuration)
        elif flags.cleanup:
            event_loop.run(clean_up())
        else:
            start = Start(
                configuration,
                flags.master,
                flags.config,
                flags.init_only,
                mode_is_default=not given_configuration.mode,
                flags={flag.name: format_value(flag, value) for flag, value in declared_flags(flags)},
            )
            event_loop.run(run(start))
    except (ValueError, OSError, Unavailable, NodeChanged) as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    return 0


def _complete(flags: ProxyFlags, given: Collection[str]) -> Configuration:
    from tetrapod.generic.configuration import feature_gates
    from tetrapod.kube_proxy.configuration_file import read

    try:
        configuration = read(flags.config) if flags.config else configuration_of(flags, given)
        gates = configuration.feature_gates.items()
        feature_gates.configure([f"{name}={str(value).lower()}" for name, value in gates])
        return with_flags(configuration, flags, given)
    except ValueError as error:
        raise ValueError(f"failed complete: {error}") from None
