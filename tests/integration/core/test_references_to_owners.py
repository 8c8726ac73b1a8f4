"""Owner references that the garbage collector must not mistake for references to deleted objects."""

from __future__ import annotations

import itertools
import ssl
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from integration.core.test_garbage_collection import GROUP, ask, made, owned, reflectors, serving
from support.definitions import definition, version
from support.server import Server
from support.waiting import until

_MAPS = "/api/v1/namespaces/default/configmaps"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_NAMESPACES = "/api/v1/namespaces"
_EVENTS = "/api/v1/namespaces/default/events"
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("references")) as found:
        yield found


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def is_gone(server: Server, path: str) -> bool:
    return ask(server, "GET", path)[0] == 404


def collect(server: Server, rounds: int = 3) -> None:
    """Wait until the collector has examined the objects that were created up to now, each time after the others."""
    missing = config_map("missing", uid="no-such-uid")
    for number in itertools.islice(_NUMBERS, rounds):
        made(server, _MAPS, config_map(f"collected-{number}", **owned(missing)))
        until(partial(is_gone, server, f"{_MAPS}/collected-{number}"))


def events_about(server: Server, name: str) -> list[dict[str, Any]]:
    _, events = ask(server, "GET", f"{_EVENTS}?fieldSelector=involvedObject.name={name}")
    return list(events["items"])


def watched(server: Server, version: str) -> bool:
    """Return whether the collector has listed the kind Moved in this version."""
    labels = f'{{group="{GROUP}",name="kube-apiserver",resource="moveds",version="{version}"}}'
    request = urllib.request.Request(f"{server.url}/metrics", headers={"Authorization": "Bearer gc-token"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
        return f"informer_store_resource_version{labels}" in answer.read().decode()


def test_an_object_stays_whose_owner_is_named_in_a_version_that_is_not_served(server: Server) -> None:
    """Such references remain in objects from the time of an earlier release."""
    owner = made(server, _MAPS, config_map("owner"))
    (reference,) = owned(owner)["ownerReferences"]
    former = {**reference, "apiVersion": "v9"}
    other = {**former, "name": "another"}  # the collector has to look for it
    made(server, _MAPS, config_map("of-former-version", ownerReferences=[former]))
    made(server, _MAPS, config_map("of-other-name", ownerReferences=[other]))
    collect(server)
    assert ask(server, "GET", f"{_MAPS}/of-former-version")[0] == 200
    assert ask(server, "GET", f"{_MAPS}/of-other-name")[0] == 200


def test_a_cluster_scoped_object_stays_whose_owner_has_a_namespace(server: Server) -> None:
    owner = made(server, _MAPS, config_map("of-role"))
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "of-map", **owned(owner)},
        "rules": [],
    }
    made(server, _ROLES, role)
    (event,) = until(lambda: events_about(server, "of-map"), description="the event about the reference")
    assert event["reason"] == "OwnerRefInvalidNamespace"
    collect(server)
    assert ask(server, "GET", f"{_ROLES}/of-map")[0] == 200
    assert ask(server, "DELETE", f"{_MAPS}/of-role")[0] == 200
    collect(server)
    assert ask(server, "GET", f"{_ROLES}/of-map")[0] == 200


def test_an_owner_of_another_namespace_is_reported_in_an_event(server: Server) -> None:
    made(server, _NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    owner = made(server, "/api/v1/namespaces/elsewhere/configmaps", config_map("owner"))
    collect(server)
    dependent = made(server, _MAPS, config_map("misplaced", **owned(owner)))
    (event,) = until(lambda: events_about(server, "misplaced"), description="the event about the reference")
    uid = owner["metadata"]["uid"]
    assert event["type"] == "Warning"
    assert event["reason"] == "OwnerRefInvalidNamespace"
    assert event["message"] == (
        f'ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist in namespace "default"'
    )
    assert event["reportingComponent"] == "garbage-collector-controller"
    assert event["involvedObject"] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "misplaced",
        "uid": dependent["metadata"]["uid"],
    }
    until(lambda: ask(server, "GET", f"{_MAPS}/misplaced")[0] == 404)


def test_a_dependent_that_no_longer_blocks_its_owner_releases_it(server: Server) -> None:
    owner = made(server, _MAPS, config_map("released"))
    (reference,) = owned(owner)["ownerReferences"]
    blocking = [{**reference, "blockOwnerDeletion": True}]
    made(server, _MAPS, config_map("blocker", finalizers=["example.com/hold"], ownerReferences=blocking))
    assert ask(server, "DELETE", f"{_MAPS}/released", {"propagationPolicy": "Foreground"})[0] == 200
    until(lambda: "deletionTimestamp" in ask(server, "GET", f"{_MAPS}/blocker")[1]["metadata"])
    collect(server)
    _, live = ask(server, "GET", f"{_MAPS}/blocker")
    live["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": False}]
    assert ask(server, "PUT", f"{_MAPS}/blocker", live)[0] == 200
    until(lambda: ask(server, "GET", f"{_MAPS}/released")[0] == 404)
    assert ask(server, "GET", f"{_MAPS}/blocker")[0] == 200


def test_a_cycle_of_owners_is_deleted_in_the_foreground(server: Server) -> None:
    owners = [made(server, _MAPS, config_map(f"cycle-{i}")) for i in range(3)]
    for i, owner in enumerate(owners):
        (reference,) = owned(owner)["ownerReferences"]
        name = f"cycle-{(i + 1) % 3}"
        patched = config_map(name, ownerReferences=[{**reference, "blockOwnerDeletion": True, "controller": True}])
        assert ask(server, "PUT", f"{_MAPS}/{name}", patched)[0] == 200
    assert ask(server, "DELETE", f"{_MAPS}/cycle-0", {"propagationPolicy": "Foreground"})[0] == 200
    until(lambda: all(ask(server, "GET", f"{_MAPS}/cycle-{i}")[0] == 404 for i in range(3)))


def test_dependents_stay_when_another_version_of_their_owner_becomes_preferred(server: Server) -> None:
    made(server, _DEFINITIONS, definition(GROUP, "Moved", version("v1beta1")))
    former = f"/apis/{GROUP}/v1beta1/namespaces/default/moveds"
    until(lambda: ask(server, "GET", former)[0] == 200)
    owner = made(server, former, {"apiVersion": f"{GROUP}/v1beta1", "kind": "Moved", "metadata": {"name": "owner"}})
    until(lambda: watched(server, "v1beta1"), description="the watch of the former version")
    before = reflectors(server)
    names = [f"of-moved-{i}" for i in range(20)]
    for name in names:
        made(server, _MAPS, config_map(name, **owned(owner)))
    _, live = ask(server, "GET", f"{_DEFINITIONS}/moveds.{GROUP}")
    live["spec"]["versions"].append(version("v1", storage=False))
    assert ask(server, "PUT", f"{_DEFINITIONS}/moveds.{GROUP}", live)[0] == 200
    until(lambda: watched(server, "v1"), description="the watch of the new version")
    until(lambda: reflectors(server), lambda count: count <= before, description="the end of the former watch")
    collect(server)
    assert [name for name in names if ask(server, "GET", f"{_MAPS}/{name}")[0] != 200] == []
    assert ask(server, "DELETE", f"/apis/{GROUP}/v1/namespaces/default/moveds/owner")[0] == 200
    until(lambda: all(ask(server, "GET", f"{_MAPS}/{name}")[0] == 404 for name in names))


def test_kinds_that_lack_the_preferred_version_of_their_group_are_collected(server: Server) -> None:
    """Their objects are deleted with their owners and with their namespace."""
    group = "mixed.example.com"
    made(server, _DEFINITIONS, definition(group, "Stable", version("v1"), plural="pods"))
    made(server, _DEFINITIONS, definition(group, "Fresh", version("v1beta1"), plural="freshes"))
    fresh = {"apiVersion": f"{group}/v1beta1", "kind": "Fresh"}
    path = f"/apis/{group}/v1beta1/namespaces/default/freshes"
    until(lambda: ask(server, "GET", f"/apis/{group}/v1")[0] == 200)
    until(lambda: ask(server, "GET", path)[0] == 200)
    owner = made(server, _MAPS, config_map("of-fresh"))
    made(server, path, {**fresh, "metadata": {"name": "one", **owned(owner)}})
    made(server, _NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "passing"}})
    path_in_namespace = f"/apis/{group}/v1beta1/namespaces/passing/freshes"
    made(server, path_in_namespace, {**fresh, "metadata": {"name": "two"}})
    path_of_pods = f"/apis/{group}/v1/namespaces/passing/pods"
    until(lambda: ask(server, "GET", path_of_pods)[0] == 200)
    made(server, path_of_pods, {"apiVersion": f"{group}/v1", "kind": "Stable", "metadata": {"name": "three"}})
    assert ask(server, "DELETE", f"{_NAMESPACES}/passing")[0] == 200
    until(lambda: ask(server, "GET", f"{_NAMESPACES}/passing")[0] == 404)
    assert ask(server, "GET", f"{path_in_namespace}/two")[0] == 404
    assert ask(server, "GET", f"{path_of_pods}/three")[0] == 404
    assert ask(server, "DELETE", f"{_MAPS}/of-fresh")[0] == 200
    until(lambda: ask(server, "GET", f"{path}/one")[0] == 404)
