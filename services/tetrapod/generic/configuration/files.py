"""Files that flags name, and in Go's words why they cannot be read."""

from __future__ import annotations

from pathlib import Path


def read(path: str) -> bytes:
    """
    Raises:
        ValueError: `open /x: no such file or directory`.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(complaint("read" if isinstance(error, IsADirectoryError) else "open", path, error)) from None


def complaint(verb: str, path: str, error: OSError) -> str:
    return f"{verb} {path}: {(error.strerror or str(error)).lower()}"
