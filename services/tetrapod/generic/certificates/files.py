"""Writing certificates and keys to files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
PUBLIC: Final = 0o644


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file atomically. Private files are never readable by others, not even while they are written.

    Args:
        path: the file; its directory exists.
        data: the new content.
        mode: the permissions of the file, also if it existed with others.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
    os.replace(temporary, path)
