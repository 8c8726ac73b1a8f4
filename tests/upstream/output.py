"""Parse the output of a Go test program that runs with -test.v=test2json."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_STATES: Final = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_MARK: Final = "\x16"  # begins each line of the framework itself
_FRAME: Final = re.compile(r"=== (RUN|CONT|NAME|PAUSE)\s+(\S*)")
_RESULT: Final = re.compile(r"--- (PASS|FAIL|SKIP): (\S+) \(")
_MESSAGE: Final = re.compile(r"\s+\w+\.go:\d+: (?![IWE]\d{4} )(.*)")  # without log lines of klog
_CONTINUED: Final = " " * 8
_ENDED: Final = "Tetrapod ended by itself"
_CANCELLED: Final = "INFO: canceling context: test suite deadline"  # upstream's ktesting, five seconds before its end
_LENGTH: Final = 240
_LONGEST: Final = 64 << 10
"""Characters of a message that are read. Upstream's dra/ga prints messages of 90 MB, which took minutes to join."""


@dataclass(frozen=True)
class Outcome:
    """The result of a test. `message` is the last message of a test that did not pass."""

    state: str
    message: str = ""


def parse(text: str) -> dict[str, Outcome]:
    """Return the outcome of each test and subtest.

    Tests that started and did not end are unfinished, and those that failed after their context was cancelled, because
    the time of the test program was over.
    """
    states: dict[str, str] = {}
    messages: dict[str, str] = {}
    cancelled: set[str] = set()
    current = ""
    for line in text.splitlines():
        position = line.find(_MARK)
        if position >= 0:
            line = line[position + 1 :]
            if match := _FRAME.match(line):
                current = match[2]
                states.setdefault(current, "unfinished")
            elif match := _RESULT.match(line.lstrip()):
                current = match[2]
                states[current] = _STATES[match[1]]
            continue
        if match := _RESULT.match(line.lstrip()):
            states[match[2]] = _STATES[match[1]]
        elif match := _MESSAGE.match(line):
            messages[current] = match[1].strip()
        elif line.startswith(_CONTINUED) and current in messages:
            if len(messages[current]) < _LONGEST:
                messages[current] += f"\n{line.strip()}"
            if _CANCELLED in line:
                cancelled.add(current.partition("/")[0])
        elif line.startswith("panic:"):
            messages[current] = line.strip()
    states.pop("", None)
    for name, state in states.items():
        if state == "failed" and name.partition("/")[0] in cancelled:
            states[name] = "unfinished"
    return {name: Outcome(state, _short(state, messages.get(name, ""))) for name, state in states.items()}


def _short(state: str, message: str) -> str:
    """Return a message on one line, without unprintable characters; of a server that ended by itself its error."""
    if state == "passed":
        return ""
    if _ENDED in message:
        message = f"{_ENDED}: {message[max(message.rfind('Error: '), message.index(_ENDED) + len(_ENDED) + 2) :]}"
    printable = "".join(character if character.isprintable() else " " for character in message)
    return " ".join(printable.split())[:_LENGTH]
