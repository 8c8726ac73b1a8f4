"""client-go with protobuf as its only media type works as with a real server."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.server import running

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # the first build of client-go takes minutes


def test_clients_that_only_speak_protobuf(goclient: Path, tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        found = subprocess.run(
            [goclient, "live", server.kubeconfig], capture_output=True, text=True, timeout=120, check=False
        )
    assert found.stdout == "ok\n", found.stdout + found.stderr
