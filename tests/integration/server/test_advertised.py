"""The address that a server advertises."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.failing_starts import failed_start
from support.https_client import HttpsClient
from support.server import running
from tetrapod.apps.options.generic import GenericFlags
from tetrapod.apps.options.options import Options
from tetrapod.apps.options.serving import ServingFlags
from tetrapod.apps.options.tetrapod import PeerFlags
from tetrapod.apps.wiring.addresses import external_address, reachable_address
from tetrapod.generic.server.kubernetes_service.presence import may_be_endpoint

pytestmark = pytest.mark.long

ADDRESS = "192.0.2.2"


def test_the_service_kubernetes_leads_to_the_advertised_address(tmp_path: Path) -> None:
    with running(tmp_path, f"--advertise-address={ADDRESS}") as server:
        client = HttpsClient(server.kubeconfig, url=server.url)
        endpoints = client.until(
            lambda r: r.status == 200, "GET", "/api/v1/namespaces/default/endpoints/kubernetes"
        ).body
        slices = client.call("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").body
        assert [a["ip"] for a in endpoints["subsets"][0]["addresses"]] == [ADDRESS]
        assert slices["endpoints"][0]["addresses"] == [ADDRESS]
        assert ADDRESS in server.kubeconfig.read_text()
        assert client.call("DELETE", "/api/v1/namespaces/default/services/kubernetes").status == 200
        assert client.until(lambda r: r.status == 200, "GET", "/api/v1/namespaces/default/services/kubernetes").body[
            "spec"
        ]["clusterIP"]


def test_a_server_that_listens_everywhere_is_an_endpoint_at_the_address_that_leads_outside(tmp_path: Path) -> None:
    address = reachable_address(Options())
    with running(tmp_path, "--bind-address=0.0.0.0", "--advertise-address=0.0.0.0") as server:
        client = HttpsClient(server.kubeconfig)
        if may_be_endpoint(address):  # the host has a default route
            path = "/api/v1/namespaces/default/endpoints/kubernetes"
            endpoints = client.until(lambda r: r.status == 200, "GET", path).body
            assert [a["ip"] for a in endpoints["subsets"][0]["addresses"]] == [address]
            assert (
                HttpsClient(server.kubeconfig, url=f"https://{address}:{urlsplit(server.url).port}")
                .call("GET", path)
                .status
                == 200
            )
        assert "https://127.0.0.1:" in server.kubeconfig.read_text()


def test_a_server_of_both_families_is_known_by_the_one_of_its_services() -> None:
    ipv6, ipv4 = (Options(serving=ServingFlags(bind_address=address)) for address in ("::", "0.0.0.0"))
    assert reachable_address(ipv6) == reachable_address(ipv4)


def test_a_server_on_loopback_advertises_no_address(tmp_path: Path) -> None:
    assert reachable_address(Options(serving=ServingFlags(bind_address="127.0.0.1"))) == "127.0.0.1"
    with running(tmp_path) as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("GET", "/api/v1/namespaces/default/services/kubernetes").status == 200
        assert client.call("GET", "/api/v1/namespaces/default/endpoints/kubernetes").status == 404


def test_an_invalid_address_is_rejected_at_start(tmp_path: Path) -> None:
    failed = failed_start(tmp_path / "data", "--advertise-address=nowhere")
    assert failed.code == 2
    assert "'--advertise-address': failed to parse IP: \"nowhere\"" in failed.stderr


def test_the_keys_of_service_account_tokens_are_at_the_address_for_others(tmp_path: Path) -> None:
    with running(tmp_path, f"--advertise-address={ADDRESS}") as server:
        about = HttpsClient(server.kubeconfig, url=server.url).call("GET", "/.well-known/openid-configuration").body
        assert about["issuer"] == "https://kubernetes.default.svc"
        assert about["jwks_uri"] == f"https://{ADDRESS}:{urlsplit(server.url).port}/openid/v1/jwks"


def test_discovery_says_where_the_server_is_to_be_reached(tmp_path: Path) -> None:
    with running(tmp_path, "--external-hostname=api.example:443") as server:
        versions = HttpsClient(server.kubeconfig, url=server.url).call("GET", "/api").body
        assert versions["serverAddressByClientCIDRs"] == [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "api.example:443"}
        ]


def test_the_external_host_name_may_have_a_port_of_its_own() -> None:
    assert external_address(Options(serving=ServingFlags(bind_address="::1"))) == "[::1]:6443"
    assert external_address(Options(generic=GenericFlags(external_hostname="api.example"))) == "api.example:6443"
    assert external_address(Options(generic=GenericFlags(external_hostname="api.example:443"))) == "api.example:443"
    assert external_address(Options(generic=GenericFlags(external_hostname="fd00::1"))) == "[fd00::1]:6443"
    assert external_address(Options(generic=GenericFlags(external_hostname="[fd00::1]:1"))) == "[fd00::1]:1"
    separate = Options(
        serving=ServingFlags(secure_port=6446),
        peers=PeerFlags(aggregator_url=("https://aggregator:6443", "https://other:6443")),
    )
    assert external_address(separate) == "aggregator:6443"
    assert external_address(separate.with_flags({"external-hostname": "api.example"})) == "api.example:6443"


def test_a_jwks_address_that_is_not_https_is_rejected_at_the_start(tmp_path: Path) -> None:
    failed = failed_start(tmp_path / "data", "--service-account-jwks-uri=http://keys.example")
    assert failed.code == 1
    assert "service-account-jwks-uri requires https scheme, parsed as: http://keys.example" in failed.stderr
