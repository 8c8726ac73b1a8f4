"""Two replicas of core over one etcd, behind two aggregators: addresses, ports and quota are allocated exactly once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.waiting import until
from support.wire import Answer, Client, Endpoint

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SERVICES = "/api/v1/namespaces/default/services"


def everywhere(aggregators: list[Endpoint], count: int, work: Callable[[Client, int], Answer]) -> list[Answer]:
    """Send `count` requests, four at a time through each aggregator."""

    def some(which: int) -> list[Answer]:
        with Client(aggregators[which % 2]) as client:
            return [work(client, i) for i in range(which, count, 8)]

    with ThreadPoolExecutor(8) as pool:
        return [answer for answers in pool.map(some, range(8)) for answer in answers]


def service(client: Client, i: int) -> Answer:
    return client(
        "POST", SERVICES, {"metadata": {"name": f"s{i}"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    )


def test_no_address_and_no_port_is_given_twice(aggregators: list[Endpoint]) -> None:
    answers = everywhere(aggregators, 48, service)
    assert {answer.status for answer in answers} == {201}, [a.body for a in answers if a.status != 201][:3]
    made = [answer.json for answer in answers]
    assert len({s["spec"]["clusterIP"] for s in made}) == len({s["spec"]["ports"][0]["nodePort"] for s in made}) == 48
    everywhere(aggregators, 48, lambda client, i: client("DELETE", f"{SERVICES}/s{i}"))
    with Client(aggregators[0]) as client:
        left = client("GET", "/apis/networking.k8s.io/v1/ipaddresses").json["items"]
        assert [a["spec"]["parentRef"]["name"] for a in left] == ["kubernetes"]
    again = everywhere(aggregators, 48, service)
    assert {answer.status for answer in again} == {201}, "what was given back is there again"
    everywhere(aggregators, 48, lambda client, i: client("DELETE", f"{SERVICES}/s{i}"))


def test_one_address_that_all_want_goes_to_one(aggregators: list[Endpoint]) -> None:
    def take(client: Client, i: int) -> Answer:
        spec = {"clusterIP": "10.9.0.5", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]}
        return client("POST", SERVICES, {"metadata": {"name": f"one{i}"}, "spec": spec})

    answers = everywhere(aggregators, 16, take)
    assert sorted(answer.status for answer in answers) == [201] + [422] * 15
    (made,) = [answer.json["metadata"]["name"] for answer in answers if answer.status == 201]
    with Client(aggregators[1]) as client:
        assert client("DELETE", f"{SERVICES}/{made}").status == 200


def test_a_quota_is_exact(aggregators: list[Endpoint]) -> None:
    with Client(aggregators[0]) as client:
        assert client("POST", "/api/v1/namespaces", {"metadata": {"name": "small"}}).status == 201
        quotas = "/api/v1/namespaces/small/resourcequotas"
        body = {"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "20", "services": "5"}}}
        assert client("POST", quotas, body).status == 201
        until(
            lambda: client("GET", f"{quotas}/q").json["status"],
            lambda s: s.get("used") == {"count/secrets": "0", "services": "0"},
        )
        with Client(aggregators[1]) as other:
            until(lambda: other("GET", f"{quotas}/q").json["status"], lambda s: "used" in s)
        answers = everywhere(
            aggregators, 64, lambda c, i: c("POST", "/api/v1/namespaces/small/secrets", {"metadata": {"name": f"x{i}"}})
        )
        assert sorted({answer.status for answer in answers}) == [201, 403]
        assert sum(answer.status == 201 for answer in answers) == 20
        assert client("GET", f"{quotas}/q").json["status"]["used"]["count/secrets"] == "20"
        made = len(client("GET", "/api/v1/namespaces/small/secrets").json["items"])
        assert made == 20
