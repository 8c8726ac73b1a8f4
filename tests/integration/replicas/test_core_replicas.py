"""Two cores over one etcd behind two front doors that turn to both: what is given out once is given out once by all together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.replicas.conftest import Door
from support.waiting import until
from support.wire import Answer, Client

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SERVICES = "/api/v1/namespaces/default/services"


def everywhere(doors: list[Door], count: int, work: Callable[[Client, int], Answer]) -> list[Answer]:
    """`count` requests, four at once at each door."""

    def some(which: int) -> list[Answer]:
        with doors[which % 2].client() as client:
            return [work(client, i) for i in range(which, count, 8)]

    with ThreadPoolExecutor(8) as pool:
        return [answer for answers in pool.map(some, range(8)) for answer in answers]


def service(client: Client, i: int) -> Answer:
    return client("POST", SERVICES, {"metadata": {"name": f"s{i}"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})


def test_no_address_and_no_port_is_given_twice(doors: list[Door]) -> None:
    answers = everywhere(doors, 48, service)
    assert {answer.status for answer in answers} == {201}, [a.body for a in answers if a.status != 201][:3]
    made = [answer.json for answer in answers]
    assert len({s["spec"]["clusterIP"] for s in made}) == len({s["spec"]["ports"][0]["nodePort"] for s in made}) == 48
    everywhere(doors, 48, lambda client, i: client("DELETE", f"{SERVICES}/s{i}"))
    with doors[0].client() as client:
        left = client("GET", "/apis/networking.k8s.io/v1/ipaddresses").json["items"]
        assert [a["spec"]["parentRef"]["name"] for a in left] == ["kubernetes"]
    again = everywhere(doors, 48, service)
    assert {answer.status for answer in again} == {201}, "what was given back is there again"
    everywhere(doors, 48, lambda client, i: client("DELETE", f"{SERVICES}/s{i}"))


def test_one_address_that_all_want_goes_to_one(doors: list[Door]) -> None:
    def take(client: Client, i: int) -> Answer:
        spec = {"clusterIP": "10.9.0.5", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]}
        return client("POST", SERVICES, {"metadata": {"name": f"one{i}"}, "spec": spec})

    answers = everywhere(doors, 16, take)
    assert sorted(answer.status for answer in answers) == [201] + [422] * 15
    (made,) = [answer.json["metadata"]["name"] for answer in answers if answer.status == 201]
    with doors[1].client() as client:
        assert client("DELETE", f"{SERVICES}/{made}").status == 200


def test_a_quota_is_exact(doors: list[Door]) -> None:
    with doors[0].client() as client:
        assert client("POST", "/api/v1/namespaces", {"metadata": {"name": "small"}}).status == 201
        quotas = "/api/v1/namespaces/small/resourcequotas"
        body = {"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "20", "services": "5"}}}
        assert client("POST", quotas, body).status == 201
        until(lambda: client("GET", f"{quotas}/q").json["status"], lambda s: s.get("used") == {"count/secrets": "0", "services": "0"})
        with doors[1].client() as other:
            until(lambda: other("GET", f"{quotas}/q").json["status"], lambda s: "used" in s)
        answers = everywhere(doors, 64, lambda c, i: c("POST", "/api/v1/namespaces/small/secrets", {"metadata": {"name": f"x{i}"}}))
        assert sorted({answer.status for answer in answers}) == [201, 403]
        assert sum(answer.status == 201 for answer in answers) == 20
        assert client("GET", f"{quotas}/q").json["status"]["used"]["count/secrets"] == "20"
        made = len(client("GET", "/api/v1/namespaces/small/secrets").json["items"])
        assert made == 20
