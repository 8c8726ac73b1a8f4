"""Runs a program in this process, or in several workers (--workers)."""

from __future__ import annotations

from collections.abc import Callable

import click

from tetrapod.apps.options.options import Options
from tetrapod.apps.process import Server, run


def run_program(options: Options, make: Callable[[Options], Server]) -> int:
    """Run a server until a signal arrives, and return the exit code.

    Args:
        options: the options.
        make: creates the server; called in the event loop of each process.

    Raises:
        click.UsageError: the store cannot be used by several processes.
    """
    if options.tetrapod.workers == 1:
        return run(lambda: make(options))
    if not options.etcd.servers:
        raise click.UsageError(
            f"--workers={options.tetrapod.workers} needs --etcd-servers: only one process can use the SQLite database"
        )
    from tetrapod.apps.workers.supervisor import supervise

    return supervise(options, make)
