"""Temporary files for certificates and keys, because ssl loads them from files only."""

from __future__ import annotations

import atexit
import os
import tempfile
from pathlib import Path


def temporary_file(pem: bytes) -> str:
    """Write a certificate or key to a new file that only this user can read, and return its path.

    The file is deleted when the process ends.

    Raises:
        OSError: the file cannot be written.
    """
    descriptor, path = tempfile.mkstemp(prefix="tetrapod-", suffix=".pem")
    atexit.register(Path(path).unlink, missing_ok=True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    return path
