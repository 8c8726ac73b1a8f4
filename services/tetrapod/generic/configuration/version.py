"""The version of the server. Upstream: k8s.io/apimachinery/pkg/version."""

from __future__ import annotations

import platform
import sys
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.golang.versions import parse_semantic
from tetrapod.machinery.gvk import Object

KUBERNETES: Final = "1.37.1"
RELEASE: Final = (1, 37)
"""The major and minor version."""
GIT_VERSION: Final = f"v{KUBERNETES}"
"""As upstream reports it, because clients depend on it; `goVersion` and `compiler` show that this is another
implementation. `--version=v1.37.1-SUFFIX` changes it (`report_version`).
"""
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

    Upstream: staging/src/k8s.io/component-base/version/dynamic.go
    """
    if version != GIT_VERSION and ".".join(parse_semantic(version)) != KUBERNETES:
        raise ValueError(
            f"version {go_quote(version)} must match major/minor/patch of default version {go_quote(GIT_VERSION)}"
        )
    _reported[0] = version
