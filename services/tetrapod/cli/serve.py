"""`tetrapod serve SERVICE`: one of the four services as a process of its own."""

from __future__ import annotations

import sys

import click

from tetrapod.apps.options.options import Options
from tetrapod.cli.flags import ProgramCommand, program_command
from tetrapod.cli.prepare import prepare


@click.group()
def serve() -> None:
    """Run one of the four services, over etcd."""


def _serve_command(name: str, serves: str) -> ProgramCommand:
    @program_command(name, name=name)
    def command(options: Options) -> None:
        prepare(options)
        from tetrapod.apps.separate import separate_service
        from tetrapod.apps.workers.program import run_program

        sys.exit(run_program(options, separate_service(name)))

    command.help = f"Run {name}, which serves {serves}."
    return command


for _name, _serves in (
    ("aggregator", "all clients"),
    ("core", "all other built-in groups"),
    ("extensions", "CRDs and custom resources"),
    ("auth", "tokens, RBAC, and reviews of both"),
):
    serve.add_command(_serve_command(_name, _serves))
