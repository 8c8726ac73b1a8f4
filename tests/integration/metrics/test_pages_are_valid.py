"""Prometheus' own parsers accept every page of metrics, in every format, of one process and of each of the four
services.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from integration.metrics.forms import FORMS, Form, serving
from support.goprogram import build_go_program
from support.metric_load import metric_load

pytestmark = pytest.mark.timeout(600)  # the first build on a machine takes a while

_CHECKER: Final = Path(__file__).parent / "checker"
_ACCEPT: Final = {
    "text": "text/plain;version=0.0.4",
    "protobuf": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
}


@pytest.fixture(scope="module")
def checker() -> Path:
    return build_go_program(_CHECKER, "metricschecker")


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Form]:
    with serving(request.param, tmp_path_factory.mktemp("pages")) as found:
        core = found.pages.get("core", found.front)
        with metric_load(found.front.url, core.url):
            yield found


@pytest.mark.parametrize("path", ["/metrics", "/metrics/slis"])
@pytest.mark.parametrize("accept", _ACCEPT)
def test_a_page_after_mixed_traffic_has_no_faults(checker: Path, form: Form, accept: str, path: str) -> None:
    for name, ask in form.pages.items():
        for _ in range(2):  # native histograms start with the first page in protobuf
            status, page = ask("GET", path, accept=_ACCEPT[accept])
            assert status == 200, (name, page[:500])
            done = subprocess.run([checker, accept], input=page, capture_output=True, check=True, timeout=60)
            lines = done.stdout.decode().splitlines()
            assert lines[0].startswith("families ") and int(lines[0].split()[1]) >= (
                3 if path.endswith("slis") else 50
            ), (name, lines)
            assert lines[1:] == [], name
