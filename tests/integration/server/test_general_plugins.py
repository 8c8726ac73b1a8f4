"""Admission plugins for all kinds that are disabled by default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.server import running
from support.token_users import TokenUsers

TOKENS = (
    "admin-token,admin,1,system:masters\neditor-token,editor,2\nfinalizer-token,finalizer,3\ndeleter-token,deleter,4\n"
)
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
UID = "11111111-2222-3333-4444-555555555555"


def rights(client: TokenUsers, user: str, *rules: tuple[str, list[str]]) -> None:
    role = {
        "metadata": {"name": user},
        "rules": [{"apiGroups": ["*"], "resources": [what], "verbs": verbs} for what, verbs in rules],
    }
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]
    binding = {
        "metadata": {"name": user},
        "subjects": subjects,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
    }
    assert client.ask("admin", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)[0] == 201
    assert client.ask("admin", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)[0] == 201


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenUsers]:
    directory = tmp_path_factory.mktemp("plugins")
    (directory / "tokens.csv").write_text(TOKENS)
    flags = ["--enable-admission-plugins=NamespaceExists,OwnerReferencesPermissionEnforcement"]
    with running(directory, *flags, f"--token-auth-file={directory}/tokens.csv") as server:
        client = TokenUsers(server.url)
        writes = ["create", "update", "patch", "get"]
        rights(client, "editor", ("configmaps", writes))
        rights(client, "deleter", ("configmaps", [*writes, "delete"]))
        rights(client, "finalizer", ("configmaps", [*writes, "delete"]), ("replicasets/finalizers", ["update"]))
        yield client


def owned(name: str, kind: str = "ReplicaSet", api_version: str = "apps/v1", **more: Any) -> Any:
    owner = {"apiVersion": api_version, "kind": kind, "name": "owner", "uid": UID} | more
    return {"metadata": {"name": name, "ownerReferences": [owner]}}


def test_owners_can_be_set_on_create(client: TokenUsers) -> None:
    assert client.ask("editor", "POST", MAPS, owned("mine")) == (201, "")


def test_changing_owners_requires_the_delete_permission(client: TokenUsers) -> None:
    assert client.ask("admin", "POST", MAPS, {"metadata": {"name": "theirs"}})[0] == 201
    code, message = client.ask("editor", "PATCH", f"{MAPS}/theirs", owned("theirs"), MERGE)
    assert code == 403
    assert (
        message == 'configmaps "theirs" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>'
    )
    assert client.ask("editor", "PATCH", f"{MAPS}/theirs", {"data": {"a": "b"}}, MERGE)[0] == 200
    assert client.ask("deleter", "PATCH", f"{MAPS}/theirs", owned("theirs"), MERGE)[0] == 200


def test_blocking_owner_deletion_requires_the_finalizers_permission(client: TokenUsers) -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    owner = {
        "metadata": {"name": "owner"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
    _, made = client.call("admin", "POST", "/apis/apps/v1/namespaces/default/replicasets", owner)
    blocking = owned("blocking", blockOwnerDeletion=True, uid=made["metadata"]["uid"])
    code, message = client.ask("deleter", "POST", MAPS, blocking)
    assert code == 403
    rejection = (
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
    )
    assert message == f'configmaps "blocking" is forbidden: {rejection}'
    assert client.ask("finalizer", "POST", MAPS, blocking)[0] == 201
    # the field is set already
    assert client.ask("deleter", "PATCH", f"{MAPS}/blocking", {"data": {"a": "b"}}, MERGE)[0] == 200


def test_an_owner_of_an_unserved_kind_cannot_be_blocked(client: TokenUsers) -> None:
    code, message = client.ask(
        "deleter", "POST", MAPS, owned("odd", "Thing", "example.com/v1", blockOwnerDeletion=True)
    )
    assert code == 403
    assert message.endswith(
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion example.com/v1 "
        'Kind Thing: no matches for kind "Thing" in version "example.com/v1"'
    )
    assert client.ask("admin", "POST", MAPS, owned("odd", "Thing", "example.com/v1", blockOwnerDeletion=True))[0] == 201


def test_nothing_is_deleted_in_a_namespace_that_does_not_exist(client: TokenUsers) -> None:
    missing = "/api/v1/namespaces/nowhere/configmaps"
    assert client.ask("admin", "POST", missing, {"metadata": {"name": "x"}}) == (404, 'namespaces "nowhere" not found')
