"""Updates that change nothing of an object with more than 32 KiB: they write nothing, as those of a small one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.forms import FORMS, serving
from support.https_client import HttpsClient
from support.waiting import until

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("no-op-updates")) as client:
        yield client


@pytest.mark.parametrize("size", [10, 50_000])
@pytest.mark.parametrize("rules", [[], None])
def test_an_update_that_differs_in_an_empty_list_only_writes_nothing(
    client: HttpsClient, size: int, rules: Any
) -> None:
    """The stored list is null. The time of managedFields has seconds, so the update comes a second later."""
    name = f"role-{size}-{rules is None}"
    role = {"metadata": {"name": name, "annotations": {"a": "x" * size}}, "rules": []}
    created = client.call("POST", ROLES, role)
    assert created.status == 201, created.message
    second = int(time.time())
    until(time.time, lambda now: now >= second + 1)
    updated = client.call("PUT", f"{ROLES}/{name}", {**role, "rules": rules})
    assert updated.status == 200, updated.message
    assert updated.body["metadata"] == created.body["metadata"]
