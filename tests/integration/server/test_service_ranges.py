"""--service-cluster-ip-range: values that are rejected, and restarts with other networks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from support.failing_starts import start_error
from support.https_client import HttpsClient
from support.server import running
from tetrapod.core.allocators.service_ranges import service_ranges
from tetrapod.generic.storage.sqlite import SqliteBackend

RANGE = "--service-cluster-ip-range="
SERVICES = "/api/v1/namespaces/default/services"
V4, V6 = "192.168.0.0/24", "2001:db8:1::/108"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "service-cluster-ip-range[0] is not a valid cidr"),
        (f",{V4}", "service-cluster-ip-range[0] is not a valid cidr"),
        (f"{V4},", "service-cluster-ip-range[1] is not an ip net"),
        (f"{V4}, {V6}", "service-cluster-ip-range[1] is not an ip net"),
        (
            "10.0.0.0/30",
            "error determining service IP ranges for primary service cidr: the service cluster IP range must be at "
            "least 8 IP addresses",
        ),
        (f"{V4},{V6},{V4}", "--service-cluster-ip-range must not contain more than two entries"),
        (
            f"{V4},10.0.0.0/24",
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
        ),
        (
            f"{V6},2001:db8:2::/108",
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
        ),
    ],
)
def test_invalid_ranges_have_upstreams_texts(value: str, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        service_ranges(value)
    assert str(caught.value) == text


def test_server_does_not_start_with_invalid_ranges(tmp_path: Path) -> None:
    assert "must be of different IP family" in start_error(tmp_path, f"{RANGE}{V4},10.0.0.0/24")
    text = f'service IP family "{V6}" must match public address family "192.0.2.1"'
    assert text in start_error(tmp_path, f"{RANGE}{V6},{V4}", "--advertise-address=192.0.2.1")
    assert not list(tmp_path.iterdir())


def service(client: HttpsClient, name: str, **spec: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 443}], **spec}}
    created = client.call("POST", SERVICES, body)
    assert created.status == 201, created.message
    found: dict[str, Any] = created.body["spec"]
    return found


def spec_of(client: HttpsClient, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = client.call("GET", f"{SERVICES}/{name}").body["spec"]
    return spec


def test_services_keep_their_families_when_those_of_the_cluster_change(tmp_path: Path) -> None:
    cidr = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"
    with running(tmp_path, RANGE + V4) as server:
        client = HttpsClient(server.kubeconfig)
        single = service(client, "single", ipFamilyPolicy="PreferDualStack")
        assert single["ipFamilies"] == ["IPv4"]
    with running(tmp_path, f"{RANGE}{V4},{V6}") as server:
        client = HttpsClient(server.kubeconfig)
        client.until(lambda reply: reply.body["spec"]["cidrs"] == [V4, V6], "GET", cidr)
        assert spec_of(client, "single") == single
        patch = {"metadata": {"labels": {"a": "b"}}}
        patched = client.call("PATCH", f"{SERVICES}/single", patch, "application/merge-patch+json")
        assert patched.body["spec"] == single
        dual = service(client, "dual", ipFamilyPolicy="PreferDualStack")
        assert dual["ipFamilies"] == ["IPv4", "IPv6"]
        assert ":" in dual["clusterIPs"][1]
    with running(tmp_path, RANGE + V4) as server:
        client = HttpsClient(server.kubeconfig)
        assert spec_of(client, "dual") == dual
        assert service(client, "again", ipFamilyPolicy="PreferDualStack")["ipFamilies"] == ["IPv4"]
        assert client.call("GET", cidr).body["spec"]["cidrs"] == [V4, V6]
        downgrade = {"spec": {"ipFamilyPolicy": "SingleStack"}}
        patched = client.call("PATCH", f"{SERVICES}/dual", downgrade, "application/merge-patch+json")
        assert patched.body["spec"]["clusterIPs"] == dual["clusterIPs"][:1]


def stored_service(name: str, **spec: Any) -> bytes:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": "2020-01-01T00:00:00Z"}
    ports = [{"name": "p", "port": 81, "protocol": "TCP", "targetPort": 81}]
    return orjson.dumps(
        {"kind": "Service", "apiVersion": "v1", "metadata": meta, "spec": {"type": "ClusterIP", "ports": ports, **spec}}
    )


def test_services_of_old_releases_get_the_missing_fields(tmp_path: Path) -> None:
    """Kubernetes 1.19 stored neither clusterIPs nor ipFamilies."""
    old: dict[str, dict[str, Any]] = {
        "plain": {"clusterIP": "192.168.0.11"},
        "six": {"clusterIP": "2001:db8:1::11"},
        "headless": {"clusterIP": "None", "selector": {"a": "b"}},
        "free": {"clusterIP": "None"},
    }

    async def fill() -> None:
        backend = SqliteBackend(tmp_path / "tetrapod.db")
        for name, spec in old.items():
            await backend.put_if(f"/registry/services/specs/default/{name}", stored_service(name, **spec), 0)
        await backend.close()

    asyncio.run(fill())
    single, both = "SingleStack", "RequireDualStack"
    wanted = {
        "plain": (["192.168.0.11"], ["IPv4"], single),
        "six": (["2001:db8:1::11"], ["IPv6"], single),
        "headless": (["None"], ["IPv6"], single),
        "free": (["None"], ["IPv6", "IPv4"], both),
    }
    with running(tmp_path, f"{RANGE}{V6},{V4}") as server:
        client = HttpsClient(server.kubeconfig)
        for name, fields in wanted.items():
            spec = spec_of(client, name)
            assert (spec["clusterIPs"], spec["ipFamilies"], spec["ipFamilyPolicy"]) == fields
        listed = {item["metadata"]["name"]: item["spec"] for item in client.call("GET", SERVICES).body["items"]}
        assert {name: listed[name]["ipFamilies"] for name in wanted} == {name: wanted[name][1] for name in wanted}
        client.until(lambda reply: reply.status == 200, "GET", "/apis/networking.k8s.io/v1/ipaddresses/192.168.0.11")
        change = {"spec": {"clusterIP": "192.168.0.12", "clusterIPs": ["192.168.0.12"]}}
        rejected = client.call("PATCH", f"{SERVICES}/plain", change, "application/merge-patch+json")
        assert "may not change once set" in rejected.message
        upgrade = {"spec": {"ipFamilyPolicy": both}}
        upgraded = client.call("PATCH", f"{SERVICES}/plain", upgrade, "application/merge-patch+json").body["spec"]
        assert upgraded["ipFamilies"] == ["IPv4", "IPv6"]
        assert upgraded["clusterIPs"][0] == "192.168.0.11"
        put = {"metadata": {"name": "six"}, "spec": {"ports": [{"name": "p", "port": 82}]}}
        replaced = client.call("PUT", f"{SERVICES}/six", put).body["spec"]
        assert (replaced["clusterIPs"], replaced["ipFamilies"]) == wanted["six"][:2]
        assert client.call("DELETE", f"{SERVICES}/plain").status == 200
        gone = "/apis/networking.k8s.io/v1/ipaddresses/"
        for address in upgraded["clusterIPs"]:
            assert client.call("GET", gone + address).status == 404
