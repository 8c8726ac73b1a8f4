"""Clients resume: watches after a restart and on resources not used before, and lists until their version is
compacted.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.definitions import definition
from support.https_client import HttpsClient, Reply
from support.server import running
from support.services import running_services
from tetrapod.generic.storage.etcd import EtcdBackend

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/resuming.example.com/v1/namespaces/default/widgets"


def named(name: str, **more: Any) -> Any:
    return {"metadata": {"name": name}, **more}


def made(reply: Reply) -> str:
    """Return the resource version of a written object."""
    assert reply.status in {200, 201}, reply.message
    version: str = reply.body["metadata"]["resourceVersion"]
    return version


def since(client: HttpsClient, path: str, version: str, field_selector: str = "") -> list[tuple[str, str]]:
    """Return the events that a watch from this version delivers within a second."""
    found = client.call(
        "GET", f"{path}?watch=1&resourceVersion={version}&timeoutSeconds=1&fieldSelector={field_selector}"
    )
    assert found.status == 200, found.message
    lines = [found.body] if isinstance(found.body, dict) else [json.loads(line) for line in found.body.splitlines()]
    return [(event["type"], event["object"].get("message") or event["object"]["metadata"]["name"]) for event in lines]


def write(client: HttpsClient) -> str:
    """Create two ConfigMaps and delete one of them. Return the version of the first."""
    version = made(client.call("POST", CONFIG_MAPS, named("one")))
    made(client.call("POST", CONFIG_MAPS, named("two", data={"a": "b"})))
    assert client.call("DELETE", f"{CONFIG_MAPS}/one").status == 200
    return version


EXPECTED = [("ADDED", "two"), ("DELETED", "one")]
ONE_OR_TWO = "metadata.name!=kube-root-ca.crt"


def check_new_definition(client: HttpsClient, before: str) -> None:
    """Check a watch of a kind that was defined after the version at which the watch begins."""
    assert client.call("POST", CRDS, definition("resuming.example.com", "Widget")).status == 201
    widget = named("w", kind="Widget", apiVersion="resuming.example.com/v1")
    client.until(lambda reply: reply.status == 201, "POST", WIDGETS, widget)
    assert since(client, WIDGETS, before) == [("ADDED", "w")]


def check_expired_list(client: HttpsClient, token: str, version: str) -> None:
    expired = client.until(lambda reply: reply.status == 410, "GET", f"{TEMPLATES}?limit=1&continue={token}")
    assert expired.body["reason"] == "Expired"
    rest = client.call("GET", f"{TEMPLATES}?continue={expired.body['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest.body["items"]] == ["b", "c"]
    exact = client.call("GET", f"{TEMPLATES}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert (exact.status, exact.message) == (410, "The resourceVersion for the provided list is too old.")


def begin_list(client: HttpsClient) -> tuple[str, str]:
    """Begin a paginated list, and return its continue token and version."""
    for name in ("a", "b", "c"):
        template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
        made(client.call("POST", TEMPLATES, named(name, template=template)))
    page = client.call("GET", f"{TEMPLATES}?limit=1").body
    return page["metadata"]["continue"], page["metadata"]["resourceVersion"]


def check_gone(client: HttpsClient, version: str) -> None:
    gone = since(client, "/apis/apps/v1/deployments", version)
    assert [kind for kind, _ in gone] == ["ERROR"]
    assert gone[0][1].startswith(f"too old resource version: {version} (")


def test_clients_of_one_process_go_on_where_they_were(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        version = write(HttpsClient(server.kubeconfig))
    with running(tmp_path) as server:
        client = HttpsClient(server.kubeconfig)
        assert since(client, CONFIG_MAPS, version, ONE_OR_TWO) == EXPECTED
        check_new_definition(client, made(client.call("POST", CONFIG_MAPS, named("before"))))
    with running(tmp_path, "--etcd-compaction-interval=2s") as server:
        client = HttpsClient(server.kubeconfig)
        token, listed = begin_list(client)
        made(client.call("POST", CONFIG_MAPS, named("after")))
        check_expired_list(client, token, listed)
        check_gone(client, version)


@pytest.mark.long
def test_clients_of_four_services_go_on_where_they_were(tmp_path: Path) -> None:
    with running_services(tmp_path) as services:
        client = HttpsClient(services.kubeconfig)
        version = write(client)
        services.stop_all("core", "aggregator")
        for key in ("core", "aggregator"):
            services.start(key)
        for key in ("core", "aggregator"):
            services.wait_ready(key)
        assert since(client, CONFIG_MAPS, version, ONE_OR_TWO) == EXPECTED
        check_new_definition(client, made(client.call("POST", CONFIG_MAPS, named("before"))))
        token, listed = begin_list(client)
        compact(services.etcd.url, int(made(client.call("POST", CONFIG_MAPS, named("after")))))
        check_expired_list(client, token, listed)
        check_gone(client, version)


def compact(url: str, revision: int) -> None:
    async def main() -> None:
        backend = EtcdBackend([url], compaction_seconds=0)
        await backend.compact(revision)
        await backend.close()

    asyncio.run(main())
