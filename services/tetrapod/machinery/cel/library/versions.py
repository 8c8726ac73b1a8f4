"""Semantic versions. Upstream: apiserver/pkg/cel/library/semverlib.go, which uses github.com/blang/semver/v4."""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.cel.values import Special
from tetrapod.machinery.golang.integers import parse_uint
from tetrapod.machinery.golang.quoting import go_quote

_ALNUM: Final = re.compile(r"[0-9A-Za-z-]*")


class Semver(Special):
    """A semantic version without build metadata.

    Attributes:
        numbers: major, minor and patch.
        pre: the parts of the prerelease, without dots; () for a release.
    """

    cel_type = types.object_type("kubernetes.Semver")

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre

    def equals(self, other: Any) -> bool:
        return isinstance(other, Semver) and compare(self, other) == 0


def compare(a: Semver, b: Semver) -> int:
    """Return -1, 0 or 1 if version `a` is lower than, equal to or higher than `b`."""
    if a.numbers != b.numbers:
        return 1 if a.numbers > b.numbers else -1
    if not a.pre or not b.pre:
        return (not a.pre) - (not b.pre)
    for x, y in zip(a.pre, b.pre, strict=False):
        if x != y:
            return _compare_parts(x, y)
    return (len(a.pre) > len(b.pre)) - (len(a.pre) < len(b.pre))


def _compare_parts(x: str, y: str) -> int:
    if x.isdigit() and y.isdigit():
        return (int(x) > int(y)) - (int(x) < int(y))
    if x.isdigit() != y.isdigit():
        return -1 if x.isdigit() else 1
    return 1 if x > y else -1


def parse(text: str) -> Semver:
    """Parse a semantic version. Build metadata is checked, but not kept.

    Raises:
        ValueError: the text is invalid; with the text of blang/semver.
    """
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    for part in pre.split(".") if dash else ():
        _check_pre(part)
    number = _number("Patch", patch)
    for part in build.split(".") if plus else ():
        if not part:
            raise ValueError("Build meta data is empty")
        if not _ALNUM.fullmatch(part):
            raise ValueError(f"Invalid character(s) found in build meta data {go_quote(part)}")
    return Semver((major, minor, number), tuple(pre.split(".")) if dash else ())


def _number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]*", text):
        raise ValueError(f"Invalid character(s) found in {name.lower()} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{name} number must not contain leading zeroes {go_quote(text)}")
    return parse_uint(text)


def _check_pre(part: str) -> None:
    if not part:
        raise ValueError("Prerelease is empty")
    if part.isascii() and part.isdigit():
        if len(part) > 1 and part[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {go_quote(part)}")
        parse_uint(part)
    elif not _ALNUM.fullmatch(part):
        raise ValueError(f"Invalid character(s) found in prerelease {go_quote(part)}")


def _normalized(text: str) -> str:
    """Return a version without a leading `v` and leading zeros, and with missing numbers as 0.

    So `v1.02` is `1.2.0`.

    Raises:
        ValueError: numbers are missing, and the version has a prerelease or build metadata.
    """
    parts = text.removeprefix("v").split(".", 2)
    for i, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[i] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _semver(text: str, normalize: bool = False) -> Semver:
    try:
        return parse(_normalized(text) if normalize else text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


FUNCTIONS: Final[Functions] = {
    "semver": [((str,), _semver), ((str, bool), _semver)],
    "isSemver": [((str,), _is_semver), ((str, bool), _is_semver)],
    "isGreaterThan": [((Semver, Semver), lambda a, b: compare(a, b) > 0)],
    "isLessThan": [((Semver, Semver), lambda a, b: compare(a, b) < 0)],
    "compareTo": [((Semver, Semver), compare)],
    "major": [((Semver,), lambda v: v.numbers[0])],
    "minor": [((Semver,), lambda v: v.numbers[1])],
    "patch": [((Semver,), lambda v: v.numbers[2])],
}
