"""Leader election between two replicas of core, and the endpoints of the Service `kubernetes` with two aggregators."""

from __future__ import annotations

import re

import pytest

from integration.replicas.conftest import ADDRESSES, FLAGS, endpoint
from support.service_accounts import wait_for_service_account
from support.services import Services
from support.waiting import until
from support.wire import Client, Endpoint

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
CORES = ("core", "core-2")


STATUS = re.compile(r'^leader_election_master_status\{name="tetrapod-core"\} (\d)', re.MULTILINE)


def leads(services: Services, key: str) -> bool:
    with Client(endpoint(services, key)) as client:
        found = STATUS.search(client("GET", "/metrics").body.decode())
    assert found is not None
    return found[1] == "1"


def account_comes(client: Client, namespace: str) -> bool:
    """Wait for work of a controller."""
    assert client("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    wait_for_service_account(client, namespace)
    return True


def test_one_core_leads_and_the_other_takes_over_at_once_when_it_stops(
    services: Services, aggregators: list[Endpoint]
) -> None:
    until(lambda: [key for key in CORES if leads(services, key)], lambda leaders: len(leaders) == 1)
    leader = next(key for key in CORES if leads(services, key))
    other = next(key for key in CORES if key != leader)
    with Client(aggregators[0]) as client:
        assert account_comes(client, "before")
        holder = client("GET", f"{LEASES}/tetrapod-core").json["spec"]["holderIdentity"]
        assert services.stop(leader) == 0
        until(lambda: leads(services, other))
        lease = client("GET", f"{LEASES}/tetrapod-core").json
        assert lease["spec"]["holderIdentity"] != holder
        assert lease["spec"]["leaseTransitions"] >= 1
        assert account_comes(client, "after")
        services.start(leader, *FLAGS["core"])
        services.wait_ready(leader)
        assert not leads(services, leader)
        notes = [
            event["note"]
            for event in client("GET", "/apis/events.k8s.io/v1/namespaces/kube-system/events").json["items"]
        ]
        assert f"{holder} became leader" in notes


def test_every_replica_of_every_service_holds_an_identity_of_its_own(aggregators: list[Endpoint]) -> None:
    def held() -> list[str]:
        items = client("GET", f"{LEASES}?labelSelector=apiserver.kubernetes.io/identity").json["items"]
        return sorted(item["metadata"]["labels"]["apiserver.kubernetes.io/identity"] for item in items)

    wanted = ["kube-apiserver"] * 2 + ["tetrapod-auth"] + ["tetrapod-core"] * 2 + ["tetrapod-extensions"]
    with Client(aggregators[0]) as client:
        until(held, lambda found: found == wanted)


def test_the_service_kubernetes_has_the_endpoints_of_running_aggregators(
    services: Services, aggregators: list[Endpoint]
) -> None:
    def published_addresses() -> tuple[list[str], list[str]]:
        endpoints = client("GET", "/api/v1/namespaces/default/endpoints/kubernetes").json
        addresses = [a["ip"] for subset in endpoints.get("subsets") or [] for a in subset["addresses"]]
        found = client("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").json
        return addresses, [endpoint["addresses"][0] for endpoint in found.get("endpoints") or []]

    both, first = sorted(ADDRESSES.values()), [ADDRESSES["aggregator"]]
    with Client(aggregators[0]) as client:
        until(published_addresses, lambda found: found == (both, both))
        assert services.stop("aggregator-2") == 0
        assert published_addresses() == (first, first), "before it went"
        services.start("aggregator-2", *FLAGS["aggregator-2"])
        services.wait_ready("aggregator-2")
        until(published_addresses, lambda found: found == (both, both))
