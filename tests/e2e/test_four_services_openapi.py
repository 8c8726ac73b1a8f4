"""OpenAPI of many definitions in four services: complete, and without a process that holds all of it as objects."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import objects, processes
from bench.client import Client
from bench.definitions import CRDS
from support.services import Services, running_services

TOKEN = "admin-token"
TOKENS = Path(__file__).parents[1] / "contract" / "tokens.csv"
COUNT = 150
MB = 1 << 20


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with running_services(tmp_path_factory.mktemp("four"), auth=(f"--token-auth-file={TOKENS}",)) as services:
        yield services


def get(services: Services, path: str, accept: str = "application/json") -> bytes:
    request = urllib.request.Request(
        services.url + path, headers={"Authorization": f"Bearer {TOKEN}", "Accept": accept}
    )
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=60) as answer:
        return bytes(answer.read())


def test_openapi_of_many_definitions_is_complete_and_streamed(services: Services) -> None:
    get(services, "/openapi/v2")  # exclude the memory that the first document of any size needs
    asyncio.run(Client(services.url, TOKEN).create_all(CRDS, map(objects.crd, range(COUNT))))
    root = f"/apis/crds.{objects.GROUP}/v1"
    deadline = time.monotonic() + 60
    while sum("/" not in found["name"] for found in json.loads(get(services, root))["resources"]) < COUNT:
        assert time.monotonic() < deadline, "not all of them are served"
        time.sleep(0.1)

    pids = {name: services.processes[name].pid for name in ("aggregator", "extensions")}
    before = {name: processes.resident(pid) for name, pid in pids.items()}
    for pid in pids.values():
        processes.reset_peak(pid)
    body = get(services, "/openapi/v2")
    grown = {name: processes.peak_resident(pid) - before[name] for name, pid in pids.items()}
    assert max(grown.values()) <= 2 * len(body) + 16 * MB, (grown, len(body))

    prefix = ".".join([*reversed(objects.GROUP.split(".")), "crds", "v1"])
    wanted = {f"{prefix}.Thing{i}" for i in range(COUNT)}
    assert wanted <= json.loads(body)["definitions"].keys()
    whole = json.loads(get(services, f"/openapi/v3{root}"))
    assert wanted <= whole["components"]["schemas"].keys()
    assert f"{root}/namespaces/{{namespace}}/things{COUNT - 1}/{{name}}/status" in whole["paths"]
    encoded = get(services, "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert f"{prefix}.Thing{COUNT - 1}".encode() in encoded
