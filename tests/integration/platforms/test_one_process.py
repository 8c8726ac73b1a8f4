"""One process over SQLite on this system, and in an interpreter that lacks the parts of Python that Windows lacks.

The hosted CI runs this file on Windows and macOS as well.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.server import SERVICES, free_port, wait_ready

TESTS = Path(__file__).parents[2]
TEXT = "Grüße aus 東京"
WINDOWS = os.name == "nt"
# Text files are opened with an encoding, because the default of Windows is not UTF-8.
STRICT = (sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-m")
WITHOUT_UNIX = (*STRICT, "support.without_unix", "tetrapod.cli.main")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SERVICES), str(TESTS)))}
not_on_windows = pytest.mark.skipif(WINDOWS, reason="not applicable: nothing needs to be removed on Windows")


def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=60)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param((*STRICT, "tetrapod.cli.main"), id="here"),
        pytest.param(WITHOUT_UNIX, marks=not_on_windows, id="without-unix"),
    ],
)
def test_a_process_stores_and_serves_objects(tmp_path: Path, program: tuple[str, ...]) -> None:
    tokens, policy, port = tmp_path / "tokens.csv", tmp_path / "policy.yaml", free_port()
    tokens.write_text('secret,admin,admin,"system:masters"\n', "utf-8")
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n", "utf-8")
    flags = ["--data-dir", str(tmp_path / "data"), "--bind-address=127.0.0.1", f"--secure-port={port}"]
    flags += ["--token-auth-file", str(tokens), "--audit-policy-file", str(policy)]
    flags += ["--audit-log-path", str(tmp_path / "audit.log"), "--audit-log-maxsize=1"]
    log = tmp_path / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*program, "up", *flags], stdout=out, stderr=out, env=ENVIRONMENT)
    try:
        wait_ready(f"https://127.0.0.1:{port}", process, log)
        path = "/api/v1/namespaces/default/configmaps"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"text": TEXT}}
        assert ask(port, "POST", path, body)["data"]["text"] == TEXT
        assert ask(port, "GET", f"{path}/a")["data"]["text"] == TEXT
        assert "\nkubernetes_build_info{" in ask_text(port, "GET", "/metrics")
        second = run([*program, "up", *flags[:3], "--secure-port=0"])
        assert second.returncode == 1
        assert "is in use by process" in second.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0 or WINDOWS, log.read_text("utf-8")  # there the signal ends the process at once
    assert "Traceback" not in log.read_text("utf-8")
    assert '"verb":"create"' in (tmp_path / "audit.log").read_text("utf-8")


@not_on_windows
def test_a_flag_that_the_system_does_not_support_is_rejected(tmp_path: Path) -> None:
    sharing = run([*WITHOUT_UNIX, "up", "--data-dir", str(tmp_path), "--permit-port-sharing=true"])
    assert (sharing.returncode, "--permit-port-sharing: this system has no SO_REUSEPORT" in sharing.stderr) == (2, True)


def ask_text(port: int, method: str, path: str, body: object = None) -> str:
    headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", data, headers, method=method)
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def ask(port: int, method: str, path: str, body: object = None) -> dict[str, dict[str, str]]:
    document: dict[str, dict[str, str]] = json.loads(ask_text(port, method, path, body))
    return document
