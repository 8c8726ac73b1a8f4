"""Services of the previous release and of this one together over one etcd. auth is upgraded first, because it defines
the services' rights.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from support.definitions import definition
from support.kubectl import executable, wait_established
from support.load import Balancer, Load
from support.releases import NoRelease, Release, previous_release
from support.services import NAMES, Services
from support.waiting import until
from support.wire import Client, Endpoint

pytestmark = pytest.mark.timeout(600)

TOKENS = Path(__file__).parents[1] / "contract" / "tokens.csv"
FLAGS = {"auth": (f"--token-auth-file={TOKENS}",), "aggregator": ("--shutdown-delay-duration=4s",)}
CUSTOM = "/apis/load.example.com/v1/namespaces/default/widgets"
LOADED = definition("load.example.com", "Widget")


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Release:
    try:
        return previous_release(tmp_path_factory.mktemp("previous"))
    except NoRelease as error:
        pytest.skip(f"not applicable: {error}")


class Mixed:
    """A set of services with replicas of both releases."""

    def __init__(self, services: Services, previous: Release) -> None:
        self.services = services
        self._previous = previous
        self._old: set[str] = set()
        self._tours = 0

    def start(self, *keys: str, old: bool = False) -> None:
        """Start all given services at once, restarting those that already run."""
        self.services.stop_all(*(key for key in keys if key in self.services.processes))
        for key in keys:
            self.services.start(key, *FLAGS.get(key.partition("-")[0], ()), release=self._previous if old else None)
        for key in keys:
            self.services.wait_ready(key)
        self._old = self._old | {*keys} if old else self._old - {*keys}

    def only_old(self, name: str) -> None:
        wrong = [
            key
            for key in self.services.keys
            if key not in self.services.processes or (key in self._old) != (key == name)
        ]
        self.start(*(key for key in wrong if key == name), old=True)
        self.start(*(key for key in wrong if key != name))

    def kubectl(self, *args: str, stdin: object = None, server: str = "aggregator", timeout: float = 0) -> str:
        """Run kubectl and return its output, retrying for up to `timeout` seconds until it succeeds."""
        argv = [
            executable(),
            "--kubeconfig",
            str(self.services.kubeconfig),
            "--server",
            self.services.address(server),
            *args,
        ]
        text = None if stdin is None else json.dumps(stdin)
        deadline = time.monotonic() + timeout
        while (
            done := subprocess.run(argv, input=text, check=False, capture_output=True, text=True, timeout=90)
        ).returncode:
            assert time.monotonic() < deadline, (args, done.stderr)
            time.sleep(0.1)
        return done.stdout

    def define(self, wanted: dict[str, object], name: str) -> None:
        self.kubectl("apply", "-f", "-", stdin=wanted)
        wait_established(self.kubectl, name)

    def tour(self, server: str = "aggregator") -> None:
        """Use something of each service, in a namespace that is created and deleted."""
        self._tours += 1
        space = f"tour-{self._tours}"
        kubectl = partial(self.kubectl, server=server)
        there = partial(kubectl, "--namespace", space)
        kubectl("create", "namespace", space)
        there("get", "serviceaccounts", "default", timeout=60)
        there("create", "configmap", "c", "--from-literal=a=b")
        there("patch", "configmap", "c", "--type=merge", '--patch={"data": {"c": "d"}}')
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"e": "f"}}
        there("apply", "--server-side", "-f", "-", stdin=applied)
        assert json.loads(there("get", "configmap", "c", "-o=json"))["data"] == {"a": "b", "c": "d", "e": "f"}
        there("create", "deployment", "d", "--image=i")
        there("scale", "deployment", "d", "--replicas=3")
        assert "0/3" in there("get", "deployment", "d")
        group = f"{space}.example.com"
        self.define(definition(group, "Gadget"), f"gadgets.{group}")
        gadget = {"apiVersion": f"{group}/v1", "kind": "Gadget", "metadata": {"name": "g"}}
        # aggregators refresh the discovery of custom resources about once a second
        there("apply", "-f", "-", stdin=gadget, timeout=60)
        assert "gadget" in there("get", f"gadgets.{group}", "-o=name")
        assert "Gadget" in kubectl("explain", f"gadgets.{group}", timeout=60) and "ConfigMap" in kubectl(
            "explain", "configmaps"
        )
        self._account(there, space, server)
        kubectl("delete", f"crd/gadgets.{group}", "--timeout=60s")
        kubectl("delete", "namespace", space, "--timeout=60s")

    def _account(self, kubectl: partial[str], space: str, server: str) -> None:
        """Check that a service account has only the rights granted to it, and only after they are granted."""
        path = f"/api/v1/namespaces/{space}/configmaps"
        token = kubectl("create", "token", "default").strip()
        with Client(Endpoint(self.services.address(server), self.services.ca), token=token) as account:
            assert account("GET", path).status == 403
            kubectl("create", "rolebinding", "view", "--clusterrole=view", f"--serviceaccount={space}:default")
            deadline = time.monotonic() + 30
            while account("GET", path).status != 200:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert account("POST", path, {"metadata": {"name": "mine"}}).status == 403


def mixed(directory: Path, previous: Release, replicas: int) -> Iterator[Mixed]:
    services = Services(directory, replicas=dict.fromkeys(NAMES, replicas))
    services.etcd.start()
    try:
        yield Mixed(services, previous)
    finally:
        services.stop_all(*services.processes)
        services.etcd.stop()


@pytest.fixture(scope="module")
def one_of_each(tmp_path_factory: pytest.TempPathFactory, previous: Release) -> Iterator[Mixed]:
    yield from mixed(tmp_path_factory.mktemp("one"), previous, 1)


@pytest.fixture
def two_of_each(tmp_path: Path, previous: Release) -> Iterator[Mixed]:
    yield from mixed(tmp_path, previous, 2)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "auth"])
def test_one_service_of_the_previous_release_works_with_the_others_of_this_one(one_of_each: Mixed, name: str) -> None:
    one_of_each.only_old(name)
    one_of_each.tour()


def test_an_upgrade_of_one_replica_after_another_fails_no_request(two_of_each: Mixed) -> None:
    """Halfway, every service has replicas of both releases, which call each other in every combination."""
    world, services = two_of_each, two_of_each.services
    world.start(*NAMES, old=True)
    world.start(*(f"{name}-2" for name in NAMES), old=True)
    world.define(LOADED, "widgets.load.example.com")
    world.tour()
    load = Load(
        Balancer([services.address(key) for key in ("aggregator", "aggregator-2")], services.ca, "admin-token"), CUSTOM
    )
    with load.running():
        for key in ("auth", "auth-2"):
            world.start(key)
        world.tour("aggregator-2")
        for key in ("core", "extensions", "aggregator"):
            world.start(key)
        wait_for_requests(load)
        world.tour("aggregator")
        for key in ("core-2", "extensions-2", "aggregator-2"):
            world.start(key)
        wait_for_requests(load)
    assert not load.failures, "\n".join(load.failures[:20])
    assert load.made <= load.seen, "a watcher misses nothing that was made"
    assert load.retry_later.total() < load.done.total() / 20, (load.retry_later, load.done)


def wait_for_requests(load: Load, more: int = 60) -> None:
    """Wait for enough requests that every replica has called every other."""
    count = load.done.total() + more
    until(lambda: load.done.total() >= count or load.failures, description="enough requests")
