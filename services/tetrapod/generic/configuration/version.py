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


def version_info() -> Object:
    """Return a new object with the content of `/version`."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{machine}",
    }
