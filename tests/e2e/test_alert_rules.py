"""The alert rules of the chart by promtool: each fires when its condition has lasted long enough, and not before."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from support.compose import prometheus_programs
from support.helm import CHART, ROOT

pytestmark = pytest.mark.containers

RULES = CHART / "files/rules.yaml"


@pytest.fixture
def cases(manifests: Path, tmp_path: Path) -> Path:
    shutil.copy(RULES, tmp_path / "rules.yaml")
    return Path(shutil.copy(manifests / "alerts.yaml", tmp_path))


def promtool(*arguments: str | Path) -> str:
    command = [prometheus_programs() / "promtool", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_alerts_fire_in_time(cases: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", cases)


def test_every_alert_is_tried_before_and_after_its_time(cases: Path) -> None:
    tried: dict[str, set[bool]] = {}
    for case in yaml.safe_load(cases.read_text())["tests"]:
        for one in case.get("alert_rule_test", []):
            tried.setdefault(one["alertname"], set()).add(bool(one["exp_alerts"]))
    groups = yaml.safe_load(RULES.read_text())["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule]
    assert tried == {alert: {False, True} for alert in alerts}


def test_prometheus_accepts_its_configuration() -> None:
    configuration = ROOT / "deploy/observability/prometheus.yaml"
    assert "valid prometheus config file syntax" in promtool("check", "config", "--syntax-only", configuration)
    assert "SUCCESS" in promtool("check", "rules", RULES)
