"""The operator against a whole API server, a fresh one for each test."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from backups import ANNOTATION, Operator

from tetrapod.testing import ApiError, Server


def site(name: str = "blog", schedule: str = "0 3 * * *") -> dict[str, object]:
    metadata = {"name": name, "annotations": {ANNOTATION: schedule}}
    return {"apiVersion": "example.com/v1", "kind": "Site", "metadata": metadata, "spec": {"title": "Blog"}}


def schedules(server: Server) -> dict[str, str]:
    return {job["metadata"]["name"]: job["spec"]["schedule"] for job in server.client.list("batch/v1", "CronJob")}


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_site_gets_its_cron_job(tetrapod: Server, operator: Operator) -> None:
    tetrapod.apply(site())
    eventually(lambda: schedules(tetrapod) == {"blog-backup": "0 3 * * *"})
    tetrapod.apply(site(schedule="0 4 * * *"))
    eventually(lambda: schedules(tetrapod) == {"blog-backup": "0 4 * * *"})


def test_the_cron_job_goes_with_the_site(tetrapod: Server, operator: Operator) -> None:
    assert schedules(tetrapod) == {}  # nothing of the test before
    tetrapod.apply(site())
    eventually(lambda: schedules(tetrapod) != {})
    tetrapod.client.delete("example.com/v1", "Site", "blog")
    eventually(lambda: schedules(tetrapod) == {})


@pytest.mark.parametrize("schedule", ["", "every day", "99 * * * *"])
def test_a_bad_schedule_is_rejected_by_the_server(tetrapod: Server, schedule: str) -> None:
    """No operator runs here: what it does for one object is called."""
    operator = Operator(tetrapod.kubernetes_client())
    [stored] = tetrapod.apply(site(schedule=schedule))
    with pytest.raises(Exception, match=r"spec\.schedule"):
        operator.reconcile(stored)


def test_what_if_is_asked_of_a_fork(tetrapod: Server) -> None:
    tetrapod.apply(site())
    fork = tetrapod.fork()
    fork.client.delete("example.com/v1", "Site", "blog")
    assert tetrapod.client.get("example.com/v1", "Site", "blog")["spec"]["title"] == "Blog"
    with pytest.raises(ApiError, match="not found"):
        fork.client.get("example.com/v1", "Site", "blog")
