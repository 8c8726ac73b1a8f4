"""The click options of the programs, derived from the flags that the fields of `Options` declare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from tetrapod.apps.options.flag import Flag, Kind, declared_flags, format_value
from tetrapod.apps.options.options import Options
from tetrapod.cli.parameter_types import IP, Duration
from tetrapod.cli.upstream_flags import ACCEPTED, SWITCHES, rejection
from tetrapod.cli.version import upstream_version_option
from tetrapod.generic.server.controllers import UnknownControllerError, canonical

_RENAMED: Final = ("--audit-webhook-batch-initial-backoff", "--audit-webhook-initial-backoff")
"""A deprecated name and the present one. Upstream accepts both."""
_TYPES: Final[dict[Kind, Any]] = {
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.NUMBER: float,
    Kind.DURATION: Duration(),
    Kind.IP: IP(),
    Kind.PATH: click.Path(path_type=Path),
}


@cache
def flags_of(program: str) -> list[tuple[Flag, Any]]:
    """Return the flags that a program (such as `up` or `core`) accepts, with their default values.

    Do not modify the list.
    """
    return [(flag, default) for flag, default in declared_flags(Options()) if program in (flag.programs or ())]


class FlagCommand(click.Command):
    """A command whose flags are declared as fields of a dataclass. `--help` shows them in their sections.

    Its options are created when the command is used. Those of all programs would take 1.7 MB of each service.

    Args:
        declared: returns the flags with their default values.
        args: arguments of click's command.
        kwargs: arguments of click's command.
    """

    def __init__(self, *args: Any, declared: Callable[[], Sequence[tuple[Flag, Any]]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._declared = declared
        self.params.append(upstream_version_option())

    @cached_property
    def _flags(self) -> dict[str, Flag]:
        return {flag.name: flag for flag, _ in self._declared()}

    @cached_property
    def _options(self) -> list[click.Parameter]:
        return [_option(flag, default) for flag, default in self._declared()]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self._options, *super().get_params(ctx)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to the help page, in the sections of their flags."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                flag = self._flags.get(_name(param.name or ""))
                sections.setdefault(flag.section if flag is not None else "Global flags", []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class ProgramCommand(FlagCommand):
    """A command that runs a program and has the flags of `program`.

    Flags of kube-apiserver that have no effect here are accepted.
    """

    def __init__(self, *args: Any, program: str, **kwargs: Any) -> None:
        super().__init__(*args, declared=partial(flags_of, program), **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments into the context, and return those that click did not parse.

        pflag's `-v=2` is accepted. The names of ignored flags are stored in `ctx.meta`.

        Args:
            ctx: the context of the command.
            args: the command line without the name of the command.

        Raises:
            click.UsageError: a flag is unknown or its value is invalid, or an ignored flag would require another
                server.
        """
        args = [f"-{arg}" if arg.startswith("-v=") else arg.replace(*_RENAMED) for arg in args]
        known, ignored = split_ignored(args, self._flags)
        ctx.meta["tetrapod.ignored"] = ignored
        return super().parse_args(ctx, known)


def _name(parameter: str) -> str:
    """Return the name of the flag for the name of a click parameter, which has underscores."""
    return parameter.replace("_", "-")


def _option(flag: Flag, default: Any) -> click.Option:
    """Return the option of a flag. `--help` shows the default as it would be given, except lists, which get spaces."""
    names = [f"--{flag.name}"] if len(flag.name) > 1 else [f"-{flag.name}", f"--{flag.name}"]
    if flag.kind in (Kind.LIST, Kind.SETTINGS, Kind.REPEATED):
        return click.Option(names, multiple=True, default=default, help=flag.help, show_default=bool(default))
    shown = default not in ("", 0) or flag.kind is Kind.SWITCH
    default = format_value(flag, default) if flag.kind in (Kind.SWITCH, Kind.DURATION, Kind.NUMBER) else default
    if flag.kind is Kind.SWITCH:
        return click.Option(
            names, type=bool, is_flag=False, flag_value="true", default=default, help=flag.help, show_default=shown
        )
    kind = _TYPES[flag.kind]
    if flag.choices:
        kind = click.Choice(flag.choices)
    elif flag.minimum is not None:
        kind = click.IntRange(min=flag.minimum)
    return click.Option(names, type=kind, default=default, help=flag.help, show_default=shown)


def split_ignored(args: Sequence[str], own: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Remove the flags of kube-apiserver that have no effect from a command line.

    Args:
        args: the command line.
        own: the flags that the command has itself. They are not removed.

    Returns:
        The remaining arguments, and the names of the removed flags.

    Raises:
        click.UsageError: a flag has a value that would require another server.
    """
    known: list[str] = []
    ignored: list[str] = []
    rest = iter(args)
    for arg in rest:
        name, equals, value = arg.removeprefix("--").partition("=")
        if not arg.startswith("--") or name not in ACCEPTED or name in own:
            known.append(arg)
            continue
        ignored.append(name)
        if not equals:
            value = "true" if name in SWITCHES else next(rest, "")
        if reason := rejection(name, value):
            raise click.UsageError(reason)
    return known, ignored


def flag_values(declared: Iterable[Flag], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parsed click parameters by the names of the flags. Lists that were not given are left out.

    Args:
        declared: the flags.
        parameters: the values by click's parameter names. The values of a repeated list flag are joined and split at
            commas.
    """
    flags = {flag.name: flag for flag in declared}
    values: dict[str, Any] = {}
    for parameter, value in parameters.items():
        name = _name(parameter)
        if flags[name].kind in (Kind.LIST, Kind.SETTINGS):
            if value:
                values[name] = tuple(part for item in value for part in item.split(",") if part)
        else:
            values[name] = tuple(value) if flags[name].kind is Kind.REPEATED else value
    return values


def to_options(ctx: click.Context, parameters: dict[str, Any]) -> Options:
    """Return the options for parsed click parameters.

    Args:
        ctx: the context of the command, which says which flags were given and which were ignored.
        parameters: the values by click's parameter names.

    Raises:
        click.BadParameter: `--controllers` has an unknown name.
    """
    values = flag_values([flag for flag, _ in declared_flags(Options())], parameters)
    if "controllers" in values:
        try:
            values["controllers"] = canonical(values["controllers"])
        except UnknownControllerError as error:
            raise click.BadParameter(str(error), ctx, param_hint="--controllers") from None
    given = frozenset(
        _name(name) for name in parameters if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )
    ignored = tuple(dict.fromkeys(ctx.meta.get("tetrapod.ignored", ())))
    return replace(Options(), given=given, ignored=ignored).with_flags(values)


def parse_options(program: str, args: Sequence[str]) -> Options:
    """Return the options for the command line `args` of a program.

    Raises:
        click.UsageError: the command line is invalid.
    """
    with program_command(program, name="flags")(lambda options: None).make_context("flags", list(args)) as context:
        return to_options(context, context.params)


def program_command(program: str, **attrs: Any) -> Callable[[Callable[[Options], None]], ProgramCommand]:
    """Return a decorator that makes a command with the flags of a program from a function of `Options`.

    The function's docstring is the help text. `attrs` are further arguments of the command.
    """

    def decorate(run: Callable[[Options], None]) -> ProgramCommand:
        def callback(**values: Any) -> None:
            run(to_options(click.get_current_context(), values))

        return ProgramCommand(callback=callback, program=program, help=run.__doc__, **attrs)

    return decorate
