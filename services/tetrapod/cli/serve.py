"""`tetrapod serve SERVICE`: one of the four services as a process of its own."""

from __future__ import annotations

import sys

import click

from tetrapod.apps.options.options import Options
from tetrapod.cli.flags import ProgramCommand, program_command
from tetrapod.cli.prepare import prepare


@click.group()
def serve() -> None:
    """Run one service on its own, over etcd: aggregator, core, extensions or auth."""


def _serve_command(name: str) -> ProgramCommand:
    @program_command(name, name=name)
    def command(options: Options) -> None:
        prepare(options)
        from tetrapod.apps.separate import separate_service
        from tetrapod.apps.workers.program import run_program

        sys.exit(run_program(options, separate_service(name)))

    command.help = f"Run {name} on its own."
    return command


for _name in ("aggregator", "core", "extensions", "auth"):
    serve.add_command(_serve_command(_name))
