"""Move the clock of one service with libfaketime. Monotonic clocks go on, as they do when the time of a host is set."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from chaos.worlds import FourServices
from support.services import NAMES

PLACES: Final = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/local/lib")
JUMPS: Final = ("+600", "-240", "+7200", "-600")  # certificates are valid from five minutes before their creation


def library() -> Path | None:
    """Return the library of Debian's package `faketime`, in its form for programs with threads, or None."""
    found = (Path(place) / "faketime" / "libfaketimeMT.so.1" for place in PLACES)
    return next((path for path in found if path.exists()), None)


def _clock(directory: Path, name: str) -> Path:
    return directory / f"clock-of-{name}"


def environments(directory: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the variables that give each service its own adjustable clock."""
    preload = library()
    assert preload is not None
    found = {}
    for name in NAMES:
        _clock(directory, name).write_text("+0\n")
        found[name] = {
            "LD_PRELOAD": str(preload),
            "FAKETIME_TIMESTAMP_FILE": str(_clock(directory, name)),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    return found


class Jump:
    hold = 6.0

    def __init__(self, world: FourServices, chance: random.Random) -> None:
        self._directory = world.directory
        self._chance = chance
        self._name = ""

    def inject(self) -> str:
        self._name, by = self._chance.choice(NAMES), self._chance.choice(JUMPS)
        _clock(self._directory, self._name).write_text(f"{by}\n")
        return f"the clock of {self._name} jumps by {by} s"

    def heal(self) -> None:
        _clock(self._directory, self._name).write_text("+0\n")
