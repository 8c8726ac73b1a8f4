"""Files that flags name."""

from __future__ import annotations

from pathlib import Path

import click


def read_file(path: str | Path, flag: str) -> bytes:
    """Read the file that a flag names.

    Raises:
        click.ClickException: it cannot be read; the flag is named.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise click.ClickException(f"--{flag}: {error.strerror}: {path}") from None
