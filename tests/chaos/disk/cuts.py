"""The disks that a power cut may leave.

POSIX guarantees that synced data is on the disk. Any part of the other data may be there too, in any order.

Three disks are built after each step that touches a file:

- One has all data that was written so far, as after `kill -9`.
- One has synced data only.
- One has, for each sector that was not synced, the old or the new content at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chaos.disk.recording import Acknowledged, Delete, Step, Sync, Truncate, Write

SECTOR: Final = 512


@dataclass
class _File:
    durable: bytearray = field(default_factory=bytearray)
    exists: bool = False  # guaranteed: its name was synced with it
    pending: list[Write | Truncate] = field(default_factory=list)


@dataclass(frozen=True)
class Disk:
    """A remaining disk: its content by file name, and the writes that had been acknowledged before."""

    what: str
    files: dict[str, bytes]
    acknowledged: list[Acknowledged]

    def put_into(self, directory: Path) -> None:
        directory.mkdir()
        for name, content in self.files.items():
            (directory / name).write_bytes(content)


def _applied(content: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        del content[change.size :]
        return
    if len(content) < change.offset:
        content.extend(bytes(change.offset - len(content)))
    content[change.offset : change.offset + len(change.data)] = change.data


def _sectors(change: Write | Truncate) -> Iterator[Write | Truncate]:
    if isinstance(change, Truncate):
        yield change
        return
    start = 0
    while start < len(change.data):
        end = min(len(change.data), (change.offset + start) // SECTOR * SECTOR + SECTOR - change.offset)
        yield Write(change.file, change.offset + start, change.data[start:end])
        start = end


def power_cuts(steps: Iterable[Step], chance: random.Random) -> Iterator[Disk]:
    files: dict[str, _File] = {}
    acknowledged: list[Acknowledged] = []
    for number, step in enumerate(steps):
        if isinstance(step, Acknowledged):
            acknowledged.append(step)
            continue
        file = files.setdefault(step.file, _File())
        if isinstance(step, Sync):
            for change in file.pending:
                _applied(file.durable, change)
            file.pending.clear()
            file.exists = True
        elif isinstance(step, Delete):
            del files[step.file]
        else:
            file.pending.append(step)
        for what, share in (("everything", 1.0), ("what was synced", 0.0), ("what chance left", chance.random())):
            left = {
                name: content for name, file in files.items() if (content := _left(file, share, chance)) is not None
            }
            yield Disk(f"step {number} ({type(step).__name__} {step.file}), {what}", left, list(acknowledged))


def _left(file: _File, share: float, chance: random.Random) -> bytes | None:
    if not file.exists and chance.random() >= share:
        return None
    content = bytearray(file.durable)
    for change in file.pending:
        for sector in _sectors(change):
            if chance.random() < share:
                _applied(content, sector)
    return bytes(content)
