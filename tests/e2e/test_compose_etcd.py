"""compose.yaml's profile `etcd-3`: three members form a cluster over TLS and continue without one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.compose import ROOT, Compose, build_images, docker
from support.waiting import until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

MEMBERS = ("etcd", "etcd-2", "etcd-3")


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    build_images()
    lines = (ROOT / "deploy/etcd-3.env").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    compose = Compose.new(tmp_path_factory.mktemp("compose"), variables)
    try:
        compose("up", "--detach", "--no-build", *MEMBERS)
        compose.wait_healthy(*MEMBERS)
        yield compose
    finally:
        compose.down()


def metrics(compose: Compose, member: str) -> dict[str, float]:
    script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:2381/metrics', timeout=4).read().decode())"
    lines = docker("exec", compose.container(member), "python3", "-c", script).splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    }


def test_members_form_one_cluster(compose: Compose) -> None:
    found = [metrics(compose, member) for member in MEMBERS]
    assert [one["etcd_server_has_leader"] for one in found] == [1, 1, 1]
    assert sum(one["etcd_server_is_leader"] for one in found) == 1
    assert all(sum(name.startswith("etcd_network_active_peers") for name in one) == 2 for one in found)


def test_two_members_continue_without_the_third(compose: Compose) -> None:
    (leader,) = [member for member in MEMBERS if metrics(compose, member)["etcd_server_is_leader"]]
    compose("stop", leader)
    left = [member for member in MEMBERS if member != leader]
    until(
        lambda: sum(metrics(compose, member)["etcd_server_is_leader"] for member in left) == 1,
        description="another leader",
    )
    assert all(metrics(compose, member)["etcd_server_has_leader"] for member in left)
