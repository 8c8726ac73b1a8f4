"""Comparison of discovery, bootstrap objects and OpenAPI with those of kube-apiserver v1.37.1, recorded in
tests/facts/server.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contract.replaying import FLAGS, HERE
from support.server import Server, running
from unit.openapi.test_documents import without_prose

FACTS = HERE.parent / "facts" / "server"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
Get = Callable[..., Any]

WHERE = {
    "apiservices": "apis/apiregistration.k8s.io/v1",
    "clusterrolebindings": "apis/rbac.authorization.k8s.io/v1",
    "clusterroles": "apis/rbac.authorization.k8s.io/v1",
    "configmaps": "api/v1",
    "flowschemas": "apis/flowcontrol.apiserver.k8s.io/v1",
    "ipaddresses": "apis/networking.k8s.io/v1",
    "namespaces": "api/v1",
    "priorityclasses": "apis/scheduling.k8s.io/v1",
    "prioritylevelconfigurations": "apis/flowcontrol.apiserver.k8s.io/v1",
    "rolebindings": "apis/rbac.authorization.k8s.io/v1",
    "roles": "apis/rbac.authorization.k8s.io/v1",
    "serviceaccounts": "api/v1",
    "servicecidrs": "apis/networking.k8s.io/v1",
    "services": "api/v1",
}


def facts(name: str) -> Any:
    return json.loads((FACTS / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("facts"), *FLAGS) as server:
        yield server


@pytest.fixture(scope="module")
def get(server: Server) -> Get:
    context = ssl.create_default_context(cafile=str(server.ca))
    token = next(
        line.split(",")[0] for line in (HERE / "tokens.csv").read_text().splitlines() if "system:masters" in line
    )

    def ask(path: str, accept: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {token}", "Accept": accept}
        with urllib.request.urlopen(
            urllib.request.Request(server.url + path, headers=headers), context=context
        ) as answer:
            return json.load(answer)

    return ask


@pytest.mark.parametrize("name", sorted(facts("discovery")))
def test_discovery_documents_are_equal(get: Get, name: str) -> None:
    wanted = facts("discovery")[name]
    if name.startswith("aggregated-"):
        assert get(f"/{name.removeprefix('aggregated-')}", AGGREGATED) == wanted
        return
    prefix, _, rest = name.partition(".")
    group, _, version = rest.rpartition(".")
    found = get("/" + "/".join(part for part in (prefix, group, version) if part))
    for document in (wanted, found):
        for entry in document.get("serverAddressByClientCIDRs") or []:
            entry.pop("serverAddress")
    assert found == wanted


@pytest.mark.parametrize("resource", sorted(WHERE))
def test_bootstrap_objects_are_equal(get: Get, resource: str) -> None:
    wanted = [plain(obj) for obj in facts("bootstrap")[resource]]
    names = [identity(obj) for obj in wanted]
    deadline = time.monotonic() + 10
    while True:  # controllers create objects (service accounts, root CA) after the start
        found = {identity(obj): plain(obj) for obj in get(f"/{WHERE[resource]}/{resource}")["items"]}
        if all(found.get(identity(obj)) == obj for obj in wanted) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert sorted(found) == sorted(names)
    for obj in wanted:
        assert found[identity(obj)] == obj


def test_openapi_documents_of_the_server_are_equal(get: Get) -> None:
    """Compare the documents of our own definitions; the unit tests of OpenAPI compare those of upstream's."""
    wanted = json.loads((FACTS.parent / "openapi" / "digests.json").read_text())
    found = {}
    for name in get("/openapi/v3")["paths"]:
        plain = without_prose(get(f"/openapi/v3/{name}"))
        file = name.replace("/", ".")
        found[file] = {
            part: hashlib.sha256(json.dumps(plain[part], sort_keys=True).encode()).hexdigest()[:24]
            for part in wanted[file]
        }
    assert found == wanted


def identity(obj: Any) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def plain(obj: Any) -> Any:
    """Return the object without the fields that differ from server to server."""
    meta = {
        k: v
        for k, v in obj["metadata"].items()
        if k not in ("uid", "creationTimestamp", "resourceVersion", "managedFields")
    }
    obj = {**obj, "metadata": meta}
    for condition in (obj.get("status") or {}).get("conditions") or []:
        condition["lastTransitionTime"] = "<time>"
    for key, value in (obj.get("data") or {}).items():
        if "CERTIFICATE" in value or value == "<certificate>" or key == "since":
            obj["data"][key] = "<varies>"
    for port in (obj.get("spec") or {}).get("ports") or []:
        port["targetPort"] = "<varies>"
    return obj


def test_the_root_lists_the_same_paths(get: Get) -> None:
    assert set(get("/")["paths"]) == set(facts("root")["paths"])
