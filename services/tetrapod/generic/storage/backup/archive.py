"""The backup file: gzipped JSON lines.

The first line is a header, the last one contains the number of objects and a checksum. Values that are text are stored
as JSON strings, others as base64, so that a backup can be inspected with `zcat | jq`. Truncated or modified files are
rejected.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from tetrapod.generic.configuration.version import GIT_VERSION
from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item

FORMAT: Final = "tetrapod-backup"
VERSION: Final = 1


class Summary(NamedTuple):
    """The header and the object counts of a backup.

    - `taken` is the time in RFC 3339, `kubernetes` the Kubernetes version of the program that took it.
    - `source` describes the store that was read, and `revision` is the store's revision.
    - `objects` and `encrypted` are the numbers of keys and of encrypted values; `files` is that of keys and
      certificates.
    """

    taken: str
    kubernetes: str
    source: str
    revision: int
    objects: int
    encrypted: int
    files: int


def write(path: Path, contents: Contents) -> None:
    """Write a backup file atomically, replacing an existing one, with mode 0600, because it contains Secrets.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as file:
                checksum = hashlib.sha256()
                for line in _lines(contents):
                    checksum.update(line)
                    file.write(line)
                file.write(_line({"count": len(contents.items), "sha256": checksum.hexdigest()}))
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _lines(contents: Contents) -> Iterator[bytes]:
    head = {
        "format": FORMAT,
        "version": VERSION,
        "kubernetes": GIT_VERSION,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    yield _line({**head, "source": contents.source, "revision": contents.revision, "digest": contents.digest()})
    for name, data in sorted(contents.files.items()):
        yield _line({"file": name, "base64": base64.b64encode(data).decode()})
    for item in contents.items:
        record: dict[str, Any] = {"key": item.key, "revision": item.revision, "created": item.created}
        if item.ttl is not None:
            record["ttl"] = round(item.ttl, 3)
        try:
            record["value"] = item.value.decode()
        except UnicodeDecodeError:
            record["base64"] = base64.b64encode(item.value).decode()
        yield _line(record)


def _line(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record) + b"\n"


def read(path: Path) -> tuple[Contents, Summary]:
    """Read a backup file, checking that it is complete and unmodified.

    Raises:
        BackupError: the file is not a backup, is damaged or truncated, or has another version.
        OSError: the file cannot be read.
    """
    try:
        with gzip.open(path) as file:
            return _read(path, file)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BackupError(f"{path} is damaged or no backup: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"{path} is damaged: {error}") from None


def _read(path: Path, file: gzip.GzipFile) -> tuple[Contents, Summary]:
    checksum = hashlib.sha256()
    first = file.readline()
    head = orjson.loads(first) if first.startswith(b"{") else {}
    if head.get("format") != FORMAT:
        raise BackupError(f"{path} is no backup of Tetrapod's")
    if head["version"] != VERSION:
        raise BackupError(f"{path} has version {head['version']}; this Tetrapod knows version {VERSION}")
    checksum.update(first)
    files: dict[str, bytes] = {}
    items: list[Item] = []
    for line in file:
        record = orjson.loads(line)
        if "sha256" in record:
            if (record["count"], record["sha256"]) != (len(items), checksum.hexdigest()):
                raise BackupError(f"{path} is damaged: its checksum does not hold")
            contents = Contents(head["source"], head["revision"], items, files)
            if contents.digest() != head["digest"]:
                raise BackupError(f"{path} is damaged: its objects are not those that were read")
            return contents, Summary(
                head["taken"],
                head["kubernetes"],
                head["source"],
                head["revision"],
                len(items),
                contents.encrypted,
                len(files),
            )
        checksum.update(line)
        if "file" in record:
            files[record["file"]] = base64.b64decode(record["base64"], validate=True)
        else:
            value = record["value"].encode() if "value" in record else base64.b64decode(record["base64"], validate=True)
            items.append(Item(record["key"], value, record["revision"], record["created"], record.get("ttl")))
    raise BackupError(f"{path} is damaged: it has no end")
