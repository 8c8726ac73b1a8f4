"""Files that flags name."""

from __future__ import annotations

from pathlib import Path

import click


def read_file(path: str | Path, flag: str) -> bytes:
    """Return the content of a file that a flag names.

    Raises:
        click.ClickException: the file cannot be read; the text contains the flag.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise click.ClickException(f"--{flag}: {error.strerror}: {path}") from None
