"""Tests of dashboards, alert rules and Prometheus' configuration: every expression is valid PromQL, and every series in
it is served.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from support.etcd import running_etcd
from support.helm import CHART, ROOT, of_kind, render, settings
from support.kubectl import Kubectl
from tetrapod.generic.certificates.services import write_service_certificates

DASHBOARDS = sorted((CHART / "files/dashboards").glob("*.json"))
RULES = yaml.safe_load((CHART / "files/rules.yaml").read_text())["groups"]
OBSERVABILITY = ROOT / "deploy/observability"
OF_PROMETHEUS = {"up"}


@pytest.fixture(scope="module")
def served(admin: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the names of all series: those of Tetrapod and etcd, and those of recording rules."""
    with (
        running_etcd(tmp_path_factory.mktemp("etcd")) as etcd,
        urllib.request.urlopen(f"{etcd.url}/metrics", timeout=10) as answer,
    ):
        text = answer.read().decode()
    text += admin("get", "--raw", "/metrics") + admin("get", "--raw", "/metrics/slis")
    recorded = {rule["record"] for group in RULES for rule in group["rules"] if "record" in rule}
    found = recorded | OF_PROMETHEUS
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        found |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if kind == "histogram" else {name}
    return found


def names(expression: str) -> set[str]:
    """Return the names of the series that an expression selects, after substituting Grafana's variables.

    Raises:
        ValueError: if the expression is not valid PromQL.
    """
    text = expression.replace("$__rate_interval", "5m").replace("$service", ".*")
    found: set[str] = set()
    todo: list[Any] = [promql.parse(text)]
    while todo:
        match todo.pop():
            case promql.VectorSelector() as selector:
                found.add(str(selector.name))
            case promql.MatrixSelector() as selector:
                todo.append(selector.vector_selector)
            case promql.BinaryExpr() as both:
                todo += [both.lhs, both.rhs]
            case promql.Call() as call:
                todo += call.args
            case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr() as outer:
                todo.append(outer.expr)
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]
    for group in RULES:
        for rule in group["rules"]:
            yield rule.get("alert") or rule["record"], rule["expr"]


def test_every_named_series_exists(served: set[str]) -> None:
    asked = {where: names(expression) for where, expression in expressions()}
    assert len(asked) > 30
    assert {where: missing for where, found in asked.items() if (missing := found - served)} == {}


def test_dashboards_are_complete() -> None:
    uids = set()
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        uids.add(board["uid"])
        assert [panel["id"] for panel in board["panels"]] == list(range(1, len(board["panels"]) + 1))
        assert {panel["datasource"]["uid"] for panel in board["panels"]} == {"${datasource}"}
        for variable in board["templating"]["list"][1:]:
            assert re.fullmatch(r"label_values\(.+\)", variable["definition"])
    assert len(uids) == len(DASHBOARDS)


def test_alerts_have_a_description_and_a_severity() -> None:
    for group in RULES:
        for rule in group["rules"]:
            if "alert" in rule:
                assert rule["labels"]["severity"] in ("warning", "critical") and rule["for"]
                assert rule["annotations"]["summary"]


def test_the_chart_includes_dashboards_and_rules_unchanged() -> None:
    objects = render(*settings(metrics__prometheusRule__enabled=True, metrics__dashboards__enabled=True))
    (rules,) = of_kind(objects, "PrometheusRule").values()
    assert rules["spec"]["groups"] == RULES
    boards = [
        found for found in of_kind(objects, "ConfigMap").values() if "grafana_dashboard" in found["metadata"]["labels"]
    ]
    assert [json.loads(text) for found in boards for text in found["data"].values()] == [
        json.loads(p.read_text()) for p in DASHBOARDS
    ]
    named = settings(metrics__prometheusRule__enabled=True, metrics__serviceMonitor__jobName="tetrapod")
    (renamed,) = of_kind(render(*named), "PrometheusRule").values()
    assert 'job="apiserver"' not in str(renamed) and 'job="tetrapod"' in str(renamed)


def test_prometheus_targets_exist(tmp_path: Path) -> None:
    """Compare with compose.yaml: the certificates of `tetrapod certs` at their mounted paths, and each service under
    its name there.
    """
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    mounted = [volume.split(":")[:2] for volume in compose["prometheus"]["volumes"]]
    config = yaml.safe_load((OBSERVABILITY / "prometheus.yaml").read_text())
    targets = {target: source for source, target in mounted}
    assert set(config["rule_files"]) <= targets.keys()
    for source in targets.values():
        assert not source.startswith("./") or (ROOT / source).exists(), source
    write_service_certificates(tmp_path, ["localhost"])
    assert targets["/certs/monitoring"] == "certs-monitoring"
    scraped = set()
    for job in config["scrape_configs"]:
        (discovery,) = job["dns_sd_configs"]
        scraped |= set(discovery["names"])
        assert set(discovery["names"]) <= compose.keys()
        for file in [value for key, value in job.get("tls_config", {}).items() if key.endswith("_file")]:
            assert (tmp_path / Path(file).relative_to("/certs")).exists(), file
    assert scraped >= {"aggregator", "core", "extensions", "auth", "etcd", "etcd-2", "etcd-3"}


def test_grafana_is_provisioned_with_the_dashboards() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["grafana"]
    mounted = {target: source for source, target in (volume.split(":")[:2] for volume in compose["volumes"])}
    (provider,) = yaml.safe_load((OBSERVABILITY / "grafana/dashboards/tetrapod.yaml").read_text())["providers"]
    assert ROOT / mounted[provider["options"]["path"]] == CHART / "files/dashboards"
    (source,) = yaml.safe_load((OBSERVABILITY / "grafana/datasources/prometheus.yaml").read_text())["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
