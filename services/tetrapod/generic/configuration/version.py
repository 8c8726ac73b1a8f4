"""The version of the server. Upstream: k8s.io/apimachinery/pkg/version."""

from __future__ import annotations

import platform
import sys
from typing import Final

from tetrapod.machinery.gvk import Object

KUBERNETES: Final = "1.37.1"
RELEASE: Final = (1, 37)
"""The major and minor version."""
GIT_VERSION: Final = f"v{KUBERNETES}"
"""As upstream reports it, because clients depend on it; `goVersion` and `compiler` show that this is another
implementation.
"""


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
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{machine}",
    }
