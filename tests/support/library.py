"""deploy/examples/library: the external API server of the examples, and its script."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from support.kubectl import Kubectl

LIBRARY_EXAMPLE: Final = Path(__file__).parents[2] / "deploy/examples/library"


def register_library(kubectl: Kubectl, *arguments: str) -> None:
    """Run a command of `register.sh`, which creates the credentials of the server or registers it."""
    done = subprocess.run(
        [LIBRARY_EXAMPLE / "register.sh", *arguments],
        env=kubectl.env(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
