"""A violation that a checker reports."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"
