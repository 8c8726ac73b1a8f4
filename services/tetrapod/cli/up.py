"""`tetrapod up`: all four services in one process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tetrapod.apps.options.options import Options
from tetrapod.cli.flags import program_command
from tetrapod.cli.prepare import prepare

if TYPE_CHECKING:
    from tetrapod.apps.embedded import Embedded


@program_command("up", name="up")
def up(options: Options) -> None:
    """Run all four services in one process.

    It stores objects in SQLite or etcd, and creates its own certificates.
    """
    prepare(options)
    from tetrapod.apps.embedded import Embedded
    from tetrapod.apps.workers.program import run_program
    from tetrapod.generic.configuration.files import file_error_text

    def make(options: Options) -> Embedded:
        try:
            options.data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(file_error_text("mkdir", str(options.data_dir), error)) from None
        return Embedded(options)

    sys.exit(run_program(options, make))
