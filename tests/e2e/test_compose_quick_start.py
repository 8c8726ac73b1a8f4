"""deploy/README.md as a user follows it: its commands with Compose and BuildKit, and its profile `observability`.

Prometheus is a real one: it reads every service, evaluates the rules, and answers the queries of the dashboards.
Grafana is not started.
"""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from support.compose import (
    BASE,
    ETCD,
    FOUR,
    PROMETHEUS,
    REDIS,
    ROOT,
    build_prometheus,
    build_stores,
    docker_environment,
)
from support.helm import CHART
from support.kubectl import Kubectl
from support.pages import commands, execute
from support.server import free_port
from support.waiting import until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

PAGE: Final = ROOT / "deploy/README.md"
IMAGE: Final = "tetrapod:quick-start"
OF_FAULTS: Final = re.compile(r"kubernetes_healthcheck.* == 0|_rejected_requests_total|apiserver_audit_error_total")
"""Expressions of dashboards that have no value as long as nothing is wrong."""
FIRST_RATES: Final = (
    "rate(apiserver_admission_webhook_rejection_count[5m]) > 0",
    "rate(apiserver_flowcontrol_request_wait_duration_seconds_count[5m]) > 0",
)
"""Rates of what the first requests cause. They exist as soon as Prometheus has seen the counters twice."""
BROKEN_WEBHOOK: Final = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "broken"},
    "webhooks": [
        {
            "name": "broken.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["limitranges"]}
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
    ],
}


@dataclass(frozen=True)
class Installation:
    """The containers that the commands of the page have started, from a directory of its own."""

    directory: Path
    environment: Mapping[str, str]
    prometheus: str

    def sh(self, script: str, timeout: float = 600) -> str:
        return execute(script, self.directory, self.environment, timeout=timeout)

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of a response of Prometheus' API."""
        url = f"{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as response:
            return json.load(response)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    build_stores()
    build_prometheus()
    directory, port = tmp_path_factory.mktemp("user"), free_port()
    variables = {
        "HOME": str(directory),
        "COMPOSE_FILE": str(ROOT / "compose.yaml"),
        "COMPOSE_PROJECT_NAME": f"tetrapod-user-{free_port()}",
        "TETRAPOD_BASE": BASE,
        "TETRAPOD_IMAGE": IMAGE,
        "TETRAPOD_PORT": str(free_port()),
        "ETCD_IMAGE": ETCD,
        "REDIS_IMAGE": REDIS,
        "PROMETHEUS_IMAGE": PROMETHEUS,
        "PROMETHEUS_PORT": str(port),
        "GRAFANA_PASSWORD_FILE": str(directory / "grafana-password"),
    }
    installation = Installation(directory, {**docker_environment(), **variables}, f"http://127.0.0.1:{port}")
    try:
        yield installation
    finally:
        installation.sh("docker compose --profile observability down --volumes --timeout 10")


@pytest.fixture(scope="module")
def namespaces(installation: Installation) -> str:
    """Execute the commands of the page, and return what the last of them prints."""
    return installation.sh(commands(PAGE, "## Containers")[0])


@pytest.fixture(scope="module")
def kubectl(installation: Installation, namespaces: str) -> Kubectl:
    return Kubectl(installation.directory, installation.directory / "kubeconfig")


@pytest.fixture(scope="module")
def prometheus(installation: Installation, kubectl: Kubectl) -> Installation:
    """Start the profile without Grafana, and cause requests of several kinds, among them some that fail."""
    profile = commands(PAGE, "### Monitoring")[0].strip().splitlines()[-1]
    assert profile.endswith("up --detach --wait")
    installation.sh(f"{profile} prometheus")
    kubectl("create", "-f", "-", stdin=json.dumps(BROKEN_WEBHOOK))
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "rejected"}}

    def rejected() -> bool:
        kubectl("create", "configmap", "asked", "--from-literal=a=b")
        kubectl("delete", "configmap", "asked")
        kubectl.fails("get", "configmaps", "--as=jane")
        return "broken.example.com" in kubectl.run("create", "-f", "-", stdin=json.dumps(limits)).stderr

    until(rejected, description="the webhook's failure")
    until(lambda: rejected() and all(map(installation.query, FIRST_RATES)), timeout=120, description="rates")
    return installation


def test_the_commands_of_the_page_end_with_the_namespaces(installation: Installation, namespaces: str) -> None:
    assert re.search(r"^kube-system +Active", namespaces, re.MULTILINE)
    lines = installation.sh("docker compose ps --all --format json").splitlines()
    found = {container["Service"]: container for container in map(json.loads, lines)}
    assert found.keys() == {*FOUR, "etcd", "redis", "certs"}
    assert {name: one["Health"] for name, one in found.items() if name != "certs"} == dict.fromkeys(
        (*FOUR, "etcd", "redis"), "healthy"
    )
    assert found["certs"]["State"] == "exited" and found["certs"]["ExitCode"] == 0


def test_the_image_has_the_interpreter_of_its_base(installation: Installation) -> None:
    version = "docker run --rm --entrypoint python3 {} --version"
    assert installation.sh(version.format(IMAGE)) == installation.sh(version.format(BASE))


def test_the_commands_for_replicas_start_two_of_each_service(installation: Installation, kubectl: Kubectl) -> None:
    text = commands(ROOT / "docs/how-to/replicas.md", "## With Compose")[0]
    last = int(installation.environment["TETRAPOD_PORT"]) + 1  # a range of two ports, one for each aggregator
    installation.sh(text.replace("-6444", f"-{last}"))
    names = installation.sh("docker compose ps --format '{{.Service}}'").split()
    installation.sh("docker compose up --detach --wait")  # one of each, as the other tests expect
    assert sorted(name for name in names if name in FOUR) == sorted(FOUR * 2)


def test_every_service_is_read(prometheus: Installation) -> None:
    jobs = [job["job_name"] for job in _configuration()["scrape_configs"]]
    targets = prometheus.ask("targets", state="active")["activeTargets"]
    assert {target["scrapePool"] for target in targets} == set(jobs)
    assert {target["scrapeUrl"]: target["lastError"] for target in targets if target["health"] != "up"} == {}
    up = [sample["metric"] for sample in prometheus.query("up == 1")]
    pages = {(labels["service"], labels["metrics_path"]) for labels in up if labels["job"] == "apiserver"}
    assert pages == {(service, path) for service in FOUR for path in ("/metrics", "/metrics/slis")}
    assert len(up) == len(jobs)


def _configuration() -> Any:
    return yaml.safe_load((ROOT / "deploy/observability/prometheus.yaml").read_text())


def test_every_rule_is_evaluated(prometheus: Installation) -> None:
    def rules() -> list[dict[str, Any]]:
        return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

    found = until(rules, lambda found: all(rule["health"] != "unknown" for rule in found), timeout=60)
    assert {rule["name"]: rule.get("lastError") for rule in found if rule["health"] != "ok"} == {}
    groups = yaml.safe_load((CHART / "files/rules.yaml").read_text())["groups"]
    names = [rule.get("alert") or rule["record"] for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in found} == set(names)
    for recorded in (name for name in names if ":" in name):
        until(partial(prometheus.query, recorded), description=recorded)


@pytest.mark.parametrize("path", sorted((CHART / "files/dashboards").glob("*.json")), ids=lambda path: path.stem)
def test_every_panel_of_a_dashboard_shows_something(prometheus: Installation, path: Path) -> None:
    board = json.loads(path.read_text())
    for variable in board["templating"]["list"]:
        if selector := re.fullmatch(r"label_values\((.+), (\w+)\)", variable.get("definition", "")):
            assert all(selector[2] in sample["metric"] for sample in prometheus.query(selector[1]))
    for panel in board["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "5m").replace("$service", ".*")
            found = prometheus.query(expression)
            if not found and not OF_FAULTS.search(expression):
                until(partial(prometheus.query, expression), description=f"{panel['title']}: {expression}")


def test_a_stopped_service_is_reported(prometheus: Installation) -> None:
    def pending() -> set[str]:
        alerts = prometheus.ask("alerts")["alerts"]
        return {alert["labels"]["service"] for alert in alerts if alert["labels"]["alertname"] == "TetrapodReplicaDown"}

    assert pending() == set()
    prometheus.sh("docker compose pause core")
    try:
        until(pending, lambda found: found == {"core"}, timeout=90, description="the alert")
    finally:
        prometheus.sh("docker compose unpause core")
    until(pending, lambda found: not found, timeout=90, description="the end of the alert")
