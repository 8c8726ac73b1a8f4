"""A rolling restart of four services with two replicas each over one etcd under load: no request fails.

The load balancer before the aggregators stops using one that is not ready; the aggregators do the same with replicas of
other services.
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
from support.kubectl import wait_established
from support.load import Balancer, Load
from support.services import NAMES, Services, running_services
from support.waiting import until

pytestmark = pytest.mark.timeout(600)

TOKENS = Path(__file__).parents[1] / "contract" / "tokens.csv"
FLAGS = {"auth": (f"--token-auth-file={TOKENS}",), "aggregator": ("--shutdown-delay-duration=4s",)}
REPLICAS = dict.fromkeys(NAMES, 2)
CUSTOM = "/apis/load.example.com/v1/namespaces/default/widgets"
CRD = definition("load.example.com", "Widget")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with running_services(tmp_path_factory.mktemp("rolling"), REPLICAS, **FLAGS) as services:
        kubectl(services, "apply", "-f", "-", stdin=json.dumps(CRD))
        wait_established(partial(kubectl, services), "widgets.load.example.com")
        # by a controller, once a leader is elected
        while not kubectl(services, "get", "serviceaccounts", "default", "--ignore-not-found"):
            time.sleep(0.1)
        yield services


def kubectl(services: Services, *args: str, stdin: str | None = None) -> str:
    argv = ["kubectl", "--kubeconfig", str(services.kubeconfig), *args]
    return subprocess.run(argv, input=stdin, check=True, capture_output=True, text=True, timeout=60).stdout


def test_restarting_services_one_by_one_and_together_fails_no_request(services: Services) -> None:
    balancer = Balancer([services.address(key) for key in ("aggregator", "aggregator-2")], services.ca, "admin-token")
    load = Load(balancer, CUSTOM)
    with load.running():
        for name in NAMES:
            restart(services, name)
            wait_for_requests(load, load.done.total() + 20)
        restart(services, *(f"{name}-2" for name in NAMES))
        wait_for_requests(load, load.done.total() + 50)
    assert not load.failures, "\n".join(load.failures[:20])
    assert load.made <= load.seen, "a watcher misses nothing that was made"
    assert load.retry_later.total() < load.done.total() / 20, (load.retry_later, load.done)
    print(
        f"{load.done.total()} requests {dict(load.done)}, told to wait {dict(load.retry_later)}, "
        f"{load.watches_ended} watches ended"
    )


def restart(services: Services, *keys: str) -> None:
    """Restart all given services at once."""
    assert services.stop_all(*keys) == 0
    for key in keys:
        services.start(key, *FLAGS.get(key.partition("-")[0], ()))
    for key in keys:
        services.wait_ready(key)


def wait_for_requests(load: Load, count: int) -> None:
    until(lambda: load.done.total() >= count or load.failures, description="enough requests")
