"""Build the wheel of this checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = (sys.executable, "-m", "uv", "--quiet")


def build_wheel(directory: Path) -> Path:
    """Build the wheel into a directory with the locked build requirements, and return its path."""
    locked = ("--build-constraints", str(ROOT / "requirements-build.lock"), "--require-hashes")
    subprocess.run([*UV, "build", "--wheel", *locked, "--out-dir", str(directory), str(ROOT)], check=True)
    (built,) = directory.glob("*.whl")
    return built
