"""Two replicas of core over one etcd, behind two aggregators that send requests to both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.services import Services, running_services
from support.wire import Endpoint

TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"
CORE = ("--service-cluster-ip-range=10.9.0.0/26", "--service-node-port-range=30000-30049")
ADDRESSES = {"aggregator": "198.51.100.1", "aggregator-2": "198.51.100.2"}
FLAGS = {
    "auth": (f"--token-auth-file={TOKENS}",),
    "core": CORE,
    **{key: (f"--advertise-address={ip}",) for key, ip in ADDRESSES.items()},
}


@pytest.fixture(scope="package")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with running_services(tmp_path_factory.mktemp("replicas"), {"core": 2, "aggregator": 2}, **FLAGS) as services:
        yield services


@pytest.fixture(scope="package")
def aggregators(services: Services) -> list[Endpoint]:
    return [endpoint(services, name) for name in ("aggregator", "aggregator-2")]


def endpoint(services: Services, key: str) -> Endpoint:
    return Endpoint(services.address(key), services.ca)
