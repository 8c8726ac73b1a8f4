"""Every recorded scenario of a real kube-apiserver, replayed against ours.

`not_yet.txt` is the strict list of scenarios that are not equal yet: it only shrinks, and one on it that passes fails the run.
`python -m pytest tests/contract` or `make contract`, which prints the share per area.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contract import golden
from support.server import Server, running

HERE = Path(__file__).parent
NOT_YET = {line.split("#")[0].strip() for line in (HERE / "not_yet.txt").read_text().splitlines()} - {""}
RECORDINGS = sorted((HERE / "recordings").glob("*.json"))
FLAGS = (
    f"--token-auth-file={HERE / 'tokens.csv'}",
    "--authorization-mode=Node,RBAC",
    "--enable-bootstrap-token-auth",
    "--enable-admission-plugins=NodeRestriction",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--service-account-issuer=https://kubernetes.default.svc",
    "--enable-aggregator-routing",
)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory):
    with running(tmp_path_factory.mktemp("contract"), *FLAGS) as server:
        yield server


def names() -> list[object]:
    return [
        pytest.param(path, id=path.stem, marks=[pytest.mark.xfail(reason="not equal yet", strict=True)] if path.stem in NOT_YET else [])
        for path in RECORDINGS
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", names())
def test_scenario_answers_as_recorded(path: Path, server: Server) -> None:
    recording = json.loads(path.read_text())
    client = golden.Server(server.url, str(server.ca), str(HERE / "tokens.csv"), patience=8.0 if path.stem in NOT_YET else 30.0)
    try:
        answers = golden.run(recording, client)
    finally:
        if client.connection is not None:
            client.connection.close()
    differences = [
        f"step {number} {step['request']}: {line}"
        for number, (step, answer) in enumerate(zip(recording["steps"], answers, strict=True), 1)
        if step.get("record") is not False
        for line in golden.compare(step["answer"], answer)
    ]
    assert not differences, "\n".join(differences)


def test_the_list_names_only_scenarios_that_exist() -> None:
    assert {path.stem for path in RECORDINGS} >= NOT_YET
