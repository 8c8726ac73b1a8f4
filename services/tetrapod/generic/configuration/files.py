"""Reads files named by flags, with Go's error texts."""

from __future__ import annotations

from pathlib import Path


def read(path: str) -> bytes:
    """Return the contents of a file. As in Go, a file without a name does not exist.

    Raises:
        ValueError: the file cannot be read. The text is Go's, such as `open /x: no such file or directory`.
    """
    if not path:
        raise ValueError("open : no such file or directory")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(
            file_error_text("read" if isinstance(error, IsADirectoryError) else "open", path, error)
        ) from None


def file_error_text(verb: str, path: str, error: OSError) -> str:
    """Return Go's text of a file error: `VERB PATH: no such file or directory`.

    `verb` is the system call, such as `open`.
    """
    return f"{verb} {path}: {(error.strerror or str(error)).lower()}"
