"""The version of the server. Upstream: k8s.io/apimachinery/pkg/version."""

from __future__ import annotations

import platform
import re
import sys
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

KUBERNETES: Final = "1.37.1"
RELEASE: Final = (1, 37)
"""The major and minor version."""
GIT_VERSION: Final = f"v{KUBERNETES}"
"""As upstream reports it, because clients depend on it; `goVersion` and `compiler` show that this is another
implementation. `--version=v1.37.1-SUFFIX` changes it (`report_version`).
"""
_VERSION: Final = re.compile(r"\s*v?([0-9]+(?:\.[0-9]+)*)(.*)", re.ASCII).fullmatch
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SUFFIX: Final = re.compile(rf"(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?\s*", re.ASCII).fullmatch

_reported = [GIT_VERSION]  # of this process, as upstream


def version_info(emulated: tuple[int, int] = RELEASE, min_compatibility: tuple[int, int] = (1, 36)) -> Object:
    """Return a new object with the content of `/version`.

    Args:
        emulated: the release that the server emulates.
        min_compatibility: the oldest release of the components that it coexists with.
    """
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": "1",
        "minor": "37",
        "emulationMajor": str(emulated[0]),
        "emulationMinor": str(emulated[1]),
        "minCompatibilityMajor": str(min_compatibility[0]),
        "minCompatibilityMinor": str(min_compatibility[1]),
        "gitVersion": reported_version(),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{machine}",
    }


def reported_version() -> str:
    """Return the version that this process reports."""
    return _reported[0]


def report_version(version: str) -> None:
    """Report a version from now on.

    Raises:
        ValueError: it is not a semantic version, or one of another release. The text is upstream's.

    Upstream: staging/src/k8s.io/component-base/version/dynamic.go; apimachinery/pkg/util/version/version.go
    """
    if version != GIT_VERSION and _release(version) != KUBERNETES:
        raise ValueError(
            f"version {go_quote(version)} must match major/minor/patch of default version {go_quote(GIT_VERSION)}"
        )
    _reported[0] = version


def _release(version: str) -> str:
    """Return the numbers of a semantic version, such as "1.37.1".

    Raises:
        ValueError: it is not a semantic version.
    """
    if (match := _VERSION(version)) is None:
        raise ValueError(f"could not parse {go_quote(version)} as version")
    numbers, suffix = match.groups()
    components = numbers.split(".")
    if len(components) != 3:
        raise ValueError(f"illegal version string {go_quote(version)}")
    _check_zeros(components, version)
    if (rest := _SUFFIX(suffix)) is None:
        raise ValueError(f"could not parse pre-release/metadata ({suffix}) in version {go_quote(version)}")
    _check_zeros([part for part in (rest[1] or "").split(".") if part.isdecimal()], version)
    return numbers


def _check_zeros(numbers: list[str], version: str) -> None:
    for number in numbers:
        if number.startswith("0") and number != "0":
            raise ValueError(f"illegal zero-prefixed version component {go_quote(number)} in {go_quote(version)}")
