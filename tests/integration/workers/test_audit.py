"""Workers write one audit log, with whole lines, also while it is rotated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration.workers.worker_server import created, worker_server

pytestmark = pytest.mark.timeout(300)

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  users: [admin]
  verbs: [create]
  resources: [{group: "", resources: [configmaps]}]
- level: None
"""


def test_log_has_each_event_of_each_worker_once(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    logs = tmp_path / "logs"
    flags = [f"--audit-policy-file={tmp_path / 'policy.yaml'}", f"--audit-log-path={logs / 'audit.log'}"]
    flags += ["--audit-log-maxsize=1", "--audit-log-compress=false", "--audit-log-mode=blocking"]
    with worker_server(tmp_path, flags) as server, server.client_of_each() as clients:
        expected = []
        for number in range(30):
            for index, client in enumerate(clients):
                body = {"metadata": {"name": f"c{index}-{number}"}, "data": {"a": "x" * 100_000}}
                expected.append(created(client("POST", CONFIG_MAPS, body)).headers["audit-id"])
    files = list(logs.iterdir())
    assert len(files) > 3  # 6 MB in files of at most one
    assert all(file.stat().st_size <= 1024 * 1024 for file in files)
    written = [json.loads(line)["auditID"] for file in files for line in file.read_text().splitlines()]
    assert sorted(written) == sorted(expected)
