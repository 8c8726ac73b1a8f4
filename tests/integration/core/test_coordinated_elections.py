"""Coordinated leader election: LeaseCandidates, the Leases that are written for them, and upstream's own candidates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from support.failing_starts import start_error
from support.https_client import MERGE, HttpsClient
from support.server import Server, running
from support.stock import controller_manager
from support.waiting import until
from tetrapod.core.controllers.election_rules import best_leader, best_strategy

pytestmark = pytest.mark.long

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CANDIDATES: Final = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
ELECTION: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader-election-controller"
GATE: Final = "--feature-gates=CoordinatedLeaderElection=true"
SERVED: Final = "--runtime-config=coordination.k8s.io/v1beta1=true"
OLDEST: Final = "OldestEmulationVersion"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("elections"), GATE, SERVED, "--controllers=-*") as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> HttpsClient:
    return HttpsClient(server.kubeconfig)


def moment(seconds: float = 0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Candidates:
    """Candidates for one Lease, which renew themselves when the controller asks them to."""

    def __init__(self, client: HttpsClient, lease: str) -> None:
        self.client, self.lease_name = client, lease
        self.names: list[str] = []

    def add(self, name: str, emulated: str, binary: str, strategy: str = OLDEST) -> None:
        spec = {"leaseName": self.lease_name, "emulationVersion": emulated, "binaryVersion": binary}
        body = {"metadata": {"name": name}, "spec": {**spec, "strategy": strategy, "renewTime": moment()}}
        created = self.client.call("POST", CANDIDATES, body)
        assert created.status == 201, created.message
        self.names.append(name)

    def lease(self) -> dict[str, Any]:
        """Renew the candidates that were asked to, and return the spec of the Lease; {} if it does not exist."""
        for name in self.names:
            spec = self.client.call("GET", f"{CANDIDATES}/{name}").body["spec"]
            if spec.get("pingTime", "") > spec["renewTime"]:
                patch = {"spec": {"renewTime": moment()}}
                assert self.client.call("PATCH", f"{CANDIDATES}/{name}", patch, MERGE).status == 200
        answer = self.client.call("GET", f"{LEASES}/{self.lease_name}")
        spec = answer.body["spec"] if answer.status == 200 else {}
        assert isinstance(spec, dict)
        return spec

    def write(self, **spec: Any) -> None:
        """Change the spec of the Lease, as its holder does."""
        path = f"{LEASES}/{self.lease_name}"
        assert self.client.call("PATCH", path, {"spec": spec}, MERGE).status == 200


def test_the_candidate_with_the_oldest_versions_becomes_the_holder(client: HttpsClient) -> None:
    candidates = Candidates(client, "baz")
    for name, emulated, binary in (("baz1", "1.20.0", "1.20.0"), ("baz2", "1.19.0", "1.20.0")):
        candidates.add(name, emulated, binary)
    candidates.add("baz3", "1.19.0", "1.19.0")
    lease = until(candidates.lease, lambda lease: lease.get("holderIdentity") == "baz3" or "preferredHolder" in lease)
    assert (lease["strategy"], lease["leaseDurationSeconds"]) == (OLDEST, 5)
    holder = lease["holderIdentity"]
    assert lease.get("preferredHolder", holder) == "baz3"


def test_a_holder_is_asked_to_give_way_to_a_better_candidate(client: HttpsClient) -> None:
    candidates = Candidates(client, "bar")
    candidates.add("bar1", "1.20.0", "1.20.0")
    until(candidates.lease, lambda lease: lease.get("holderIdentity") == "bar1")
    candidates.add("bar2", "1.19.0", "1.19.0")

    def renewed() -> dict[str, Any]:
        candidates.write(renewTime=moment())
        return candidates.lease()

    lease = until(renewed, lambda lease: lease.get("preferredHolder") == "bar2")
    assert lease["holderIdentity"] == "bar1"
    # The holder gives the Lease up.
    candidates.write(holderIdentity="", renewTime=moment(), acquireTime=moment())
    lease = until(candidates.lease, lambda lease: lease.get("holderIdentity") == "bar2")
    assert "preferredHolder" not in lease
    assert "acquireTime" not in lease


def test_a_lease_that_is_not_renewed_gets_another_holder(client: HttpsClient) -> None:
    candidates = Candidates(client, "foo")
    candidates.add("foo1", "1.19.0", "1.19.0")
    candidates.add("foo2", "1.20.0", "1.20.0")
    until(candidates.lease, lambda lease: lease.get("holderIdentity") == "foo1")
    candidates.names.remove("foo1")  # it ends: it renews neither its candidate nor the Lease
    lease = until(candidates.lease, lambda lease: lease.get("holderIdentity") == "foo2", timeout=90)
    assert lease["strategy"] == OLDEST


def test_other_strategies_are_left_to_other_controllers(client: HttpsClient) -> None:
    candidates = Candidates(client, "other")
    candidates.add("other1", "1.19.0", "1.19.0", "example.com/mine")
    lease = until(candidates.lease)
    assert (lease["strategy"], lease.get("holderIdentity")) == ("example.com/mine", None)


def test_the_controller_itself_is_elected_and_leases_are_validated(client: HttpsClient) -> None:
    assert client.call("GET", ELECTION).body["spec"]["leaseDurationSeconds"] == 15
    spec = {"holderIdentity": "a", "preferredHolder": "b"}
    rejected = client.call("POST", LEASES, {"metadata": {"name": "invalid"}, "spec": spec})
    text = "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"
    assert (rejected.status, rejected.message) == (422, f'Lease.coordination.k8s.io "invalid" is invalid: {text}')
    rejected = client.call("POST", LEASES, {"metadata": {"name": "invalid"}, "spec": {"strategy": "Unknown"}})
    text = f'spec.strategy.strategy: Unsupported value: "Unknown": supported values: "{OLDEST}"'
    assert (rejected.status, rejected.message) == (422, f'Lease.coordination.k8s.io "invalid" is invalid: {text}')


def test_flags_that_contradict_each_other_are_rejected(tmp_path: Path) -> None:
    prefix = "--coordinated-leadership-"
    flags = (f"{prefix}lease-duration=5s", f"{prefix}renew-deadline=5s", f"{prefix}retry-period=6s")
    assert start_error(tmp_path, *flags).endswith(
        f"{prefix}lease-duration must be greater than {prefix}renew-deadline; "
        f"{prefix}renew-deadline must be greater than {prefix}retry-period"
    )


def test_without_the_gate_the_fields_are_dropped_and_nothing_is_elected(tmp_path: Path) -> None:
    with running(tmp_path, SERVED) as server:
        client = HttpsClient(server.kubeconfig)
        until(lambda: client.call("GET", "/api/v1/namespaces/default").status == 200)
        spec = {"holderIdentity": "a", "strategy": OLDEST, "preferredHolder": "b"}
        created = client.call("POST", LEASES, {"metadata": {"name": "a"}, "spec": spec})
        assert created.body["spec"] == {"holderIdentity": "a"}
        assert client.call("GET", ELECTION).status == 404


@pytest.mark.timeout(180)
def test_upstreams_controller_manager_takes_part(server: Server, client: HttpsClient, tmp_path: Path) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
    with controller_manager(tmp_path, server.kubeconfig, GATE, "--controllers=ttl-after-finished-controller"):

        def spec() -> dict[str, Any]:
            answer = client.call("GET", path)
            return answer.body["spec"] if answer.status == 200 else {}

        lease = until(spec, lambda lease: lease.get("leaseDurationSeconds") == 15, timeout=120)
        # The controller writes 5 seconds, and a holder that has taken the Lease 15.
        names = client.call("GET", CANDIDATES.replace("/default/", "/kube-system/")).body["items"]
        assert lease["strategy"] == OLDEST
        assert [item["metadata"]["name"] for item in names] == [lease["holderIdentity"]]


def candidate(name: str, emulated: str, binary: str, *, strategy: str = OLDEST, created: int = 0) -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{created:02}Z"}
    return {
        "metadata": metadata,
        "spec": {"emulationVersion": emulated, "binaryVersion": binary, "strategy": strategy},
    }


@pytest.mark.parametrize(
    ("candidates", "leader"),
    [
        ([], None),
        ([candidate("a", "", "1.20.0")], None),
        ([candidate("a", "1.2.0", "1.20.0"), candidate("b", "1.10.0", "1.19.0")], "a"),
        ([candidate("a", "1.19.0", "1.20.0"), candidate("b", "1.19.0", "1.19.0")], "b"),
        ([candidate("a", "1.19.0", "1.19.0", created=2), candidate("b", "1.19.0", "1.19.0", created=1)], "b"),
        ([candidate("a", "1.19.0", "1.19.0"), candidate("b", "1.19.0-alpha.1", "1.19.0")], "b"),
        ([candidate("a", "1.18.0", "latest"), candidate("b", "1.19.0", "1.19.0")], "b"),
    ],
)
def test_the_best_leader_has_the_oldest_versions_and_was_created_first(
    candidates: list[dict[str, Any]], leader: str | None
) -> None:
    best = best_leader(candidates)
    assert (best and best["metadata"]["name"]) == leader


def test_the_latest_binary_decides_the_strategy() -> None:
    old, new = candidate("a", "1.19.0", "1.19.0", strategy="a/b"), candidate("b", "1.19.0", "1.20.0")
    assert best_strategy([old, new]) == OLDEST
    other = candidate("c", "1.19.0", "1.20.0", strategy="c/d")
    text = rf'^candidates "b", "c" at same binary version but received differing strategies {OLDEST}, c/d$'
    with pytest.raises(ValueError, match=text):
        best_strategy([old, new, other])
