"""The content of compose.yaml: hardened, without secrets in environment variables, and with dependencies in the order
of starts.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from support.compose import docker
from support.helm import ROOT

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
PROFILES = sorted({profile for service in SERVICES.values() for profile in service.get("profiles", [])})
FOUR = ("aggregator", "core", "extensions", "auth")


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] == "65532:65532" and service["read_only"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_is_in_an_environment_variable_or_command_line(name: str) -> None:
    environment = SERVICES[name].get("environment", {})
    secret = [
        key
        for key in environment
        if any(word in key for word in ("PASSWORD", "TOKEN", "SECRET")) and not key.endswith("__FILE")
    ]
    assert secret == []
    assert not [word for word in SERVICES[name].get("command", []) if "password=" in word or "@" in word]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"certs"}))
def test_services_have_health_checks_and_wait_for_their_dependencies(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert "sleep" not in str(service)
    for needed, how in service.get("depends_on", {}).items():
        conditions = {"certs": "service_completed_successfully", "redis": "service_started"}
        assert how["condition"] == conditions.get(needed, "service_healthy")
    if name in FOUR:
        assert {"certs", "etcd"} <= service["depends_on"].keys()


def test_ports_are_published_on_loopback_unless_told_otherwise() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(published) == {"aggregator", "prometheus", "grafana"}
    for name, ports in published.items():
        address = "${TETRAPOD_ADDRESS:-127.0.0.1}:" if name == "aggregator" else "127.0.0.1:"
        assert all(port.startswith(address) for port in ports)
    for name in set(SERVICES) - {"aggregator", "prometheus", "grafana", "certs"}:
        assert SERVICES[name]["networks"] == ["backend"]
    assert COMPOSE["networks"]["backend"] == {"internal": True}


@pytest.mark.containers
@pytest.mark.parametrize("profile", ["", *PROFILES])
def test_every_profile_is_valid(profile: str) -> None:
    assert set(PROFILES) == {"etcd-3", "observability"}
    flags = ["--profile", profile] if profile else []
    docker("compose", "-f", str(ROOT / "compose.yaml"), *flags, "config", "--quiet")
