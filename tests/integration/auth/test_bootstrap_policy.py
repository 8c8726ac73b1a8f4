"""The bootstrap policy over the store of an older release."""

from __future__ import annotations

from typing import Any

import pytest

from integration.registry.conftest import backend, storages
from tetrapod.auth.rbac.bootstrap import reconcile_bootstrap_policy
from tetrapod.generic.authorization.rbac_storage import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import Object

__all__ = ["backend", "storages"]

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
ROBOT = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "robot"}
AUTHENTICATED = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
UNAUTHENTICATED = {**AUTHENTICATED, "name": "system:unauthenticated"}


def binding(name: str, autoupdate: str, *subjects: Any) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": {"team": "a"}, "annotations": {AUTOUPDATE: autoupdate}},
        "subjects": list(subjects),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
    }


@pytest.mark.parametrize(
    ("autoupdate", "subjects"),
    [("false", [ROBOT]), ("true", [ROBOT, AUTHENTICATED, UNAUTHENTICATED])],
    ids=["without updates", "with updates"],
)
async def test_public_info_viewer_inherits_the_subjects_of_discovery(
    storages: StorageFactory, autoupdate: str, subjects: list[Any]
) -> None:
    bindings = storages.resource(CLUSTER_ROLE_BINDINGS)
    await bindings.create("system:discovery", binding("system:discovery", autoupdate, ROBOT))
    await reconcile_bootstrap_policy(storages)
    created = await bindings.get("system:public-info-viewer")
    assert created is not None
    assert created.peek()["roleRef"]["name"] == "system:public-info-viewer"
    assert created.peek()["subjects"] == subjects
    assert created.peek()["metadata"]["labels"]["team"] == "a"
    assert created.peek()["metadata"]["annotations"] == {AUTOUPDATE: autoupdate}


async def test_an_existing_public_info_viewer_inherits_nothing(storages: StorageFactory) -> None:
    bindings = storages.resource(CLUSTER_ROLE_BINDINGS)
    await bindings.create("system:discovery", binding("system:discovery", "false", ROBOT))
    await bindings.create("system:public-info-viewer", binding("system:public-info-viewer", "false"))
    await reconcile_bootstrap_policy(storages)
    existing = await bindings.get("system:public-info-viewer")
    assert existing is not None and existing.peek()["subjects"] == []


async def test_rules_added_to_a_role_move_to_the_role_that_is_aggregated_into_it(storages: StorageFactory) -> None:
    roles = storages.resource(CLUSTER_ROLES)
    rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}
    old = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "view", "labels": {}, "annotations": {AUTOUPDATE: "true"}},
        "rules": [rule],
    }
    await roles.create("view", old)
    await reconcile_bootstrap_policy(storages)
    moved = await roles.get("system:aggregate-to-view")
    assert moved is not None and rule in moved.peek()["rules"] and len(moved.peek()["rules"]) > 1
    assert moved.peek()["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    view = await roles.get("view")
    assert view is not None and "aggregationRule" in view.peek()
