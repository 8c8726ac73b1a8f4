"""What is passed on to kubelets, pods and services."""

from __future__ import annotations

import orjson
import pytest

from integration.core.conftest import Core, Serve, v1
from integration.http.conftest import Client
from integration.http.test_answers import upgrading
from integration.http.test_requests import echo
from tetrapod.generic.authentication.user import UserInfo
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.request import Request, Response
from tetrapod.machinery import requestinfo


async def test_a_log_is_read_from_the_kubelet(core: Core, serve: Serve, tls: ServingTLS) -> None:
    async def kubelet(request: Request) -> Response:
        return Response(200, [], f"{request.raw_path}?{request.query_string}".encode())

    await core.node("n", (await serve(kubelet, tls)).port)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw("GET", "/api/v1/namespaces/default/pods/p/log?tailLines=5&follow=false&timestamps=true")
    assert (code, body) == (200, b"/containerLogs/default/p/c?tailLines=5&timestamps=true")


@pytest.mark.parametrize(("status", "reason"), [(400, "BadRequest"), (404, "NotFound"), (500, "InternalError")])
async def test_a_kubelet_that_refuses_a_log(core: Core, serve: Serve, tls: ServingTLS, status: int, reason: str) -> None:
    async def kubelet(request: Request) -> Response:
        return Response(status, [], b"no such container")

    await core.node("n", (await serve(kubelet, tls)).port)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw("GET", "/api/v1/namespaces/default/pods/p/log")
    answer = orjson.loads(body)
    assert (code, answer["reason"]) == (status, reason)
    assert "no such container" in answer["message"] + str(answer.get("details"))


async def test_a_kubelet_that_is_not_there(core: Core) -> None:
    await core.node("n", 1)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw("GET", "/api/v1/namespaces/default/pods/p/log")
    url = "https://127.0.0.1:1/containerLogs/default/p/c"
    assert (code, orjson.loads(body)["message"]) == (500, f'Get "{url}": dial tcp 127.0.0.1:1: connect: connection refused')
    code, body = await core.client.raw("GET", "/api/v1/nodes/n/proxy/healthz")
    text = "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused"
    assert (code, orjson.loads(body)["message"]) == (503, text)


async def test_exec_asks_for_an_upgrade(core: Core) -> None:
    await core.node("n", 1)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw("POST", "/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=true")
    assert (code, orjson.loads(body)["message"]) == (400, "Upgrade request required")


async def test_exec_is_spliced_through(core: Core, serve: Serve, tls: ServingTLS) -> None:
    seen: list[str] = []

    async def kubelet(request: Request) -> Response:
        seen.append(f"{request.raw_path}?{request.query_string}")
        return await upgrading(request)

    async def front(request: Request) -> Response:
        request.user = UserInfo("alice")
        request.info = requestinfo.parse(request.method, request.path, request.query_string)
        return await core.director(request)

    await core.node("n", (await serve(kubelet, tls)).port)
    await core.pod("p", nodeName="n")
    client = await Client.connect(await serve(front))
    target = "/api/v1/namespaces/default/pods/p/exec?command=ls&command=-l&stdout=true&tty=false&container=c"
    client.send(f"POST {target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n".encode())
    assert (await client.head())[0] == 101
    client.send(b"hello")
    assert await client.reader.readexactly(5) == b"HELLO"
    assert seen == ["/exec/default/p/c?command=ls&command=-l&output=1"]
    await client.close()


async def test_the_proxy_of_a_node_tells_nobody_who_asks(core: Core, serve: Serve, tls: ServingTLS) -> None:
    await core.node("n", (await serve(echo, tls)).port)
    path = "/api/v1/nodes/n/proxy/metrics/cadvisor"
    code, body = await core.client.raw("GET", f"{path}?a=b", headers={"x-remote-user": "root", "authorization": "Bearer t", "x-mine": "1"})
    found = orjson.loads(body)
    headers = dict(found["headers"])
    assert (code, found["raw"], found["query"]) == (200, "/metrics/cadvisor", "a=b")
    assert headers["x-mine"] == "1"
    assert headers["x-forwarded-uri"] == path
    assert not {"authorization", "x-remote-user", "x-remote-group"} & headers.keys()


async def test_redirects_lead_back_through_the_proxy(core: Core, serve: Serve, tls: ServingTLS) -> None:
    async def kubelet(request: Request) -> Response:
        return Response(302, [(b"location", b"/login?x=1")])

    await core.node("n", (await serve(kubelet, tls)).port)
    response = await core.director(_request("/api/v1/nodes/n/proxy/pods"))
    assert dict(response.headers)[b"location"] == b"/api/v1/nodes/n/proxy/login?x=1"
    response = await core.director(_request("/api/v1/nodes/n/proxy"))
    assert (response.status, dict(response.headers)[b"location"]) == (301, b"/api/v1/nodes/n/proxy/")


def _request(path: str) -> Request:
    request = Request("GET", path, user=UserInfo("alice", groups=("system:masters",)))
    request.info = requestinfo.parse("GET", path, "")
    return request


async def test_pods_are_reached_only_where_pods_can_be(core: Core) -> None:
    await core.pod("p")
    for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1"):
        status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
        await core.client.patch(v1("pods"), "default", "p", status, subresource="status")
        code, body = await core.client.raw("GET", "/api/v1/namespaces/default/pods/p:80/proxy/")
        assert (code, orjson.loads(body)["message"]) == (400, "address not allowed")


async def test_a_service_leads_only_to_its_own_pods(core: Core) -> None:
    await core.create("services", "Service", "s", spec={"ports": [{"name": "web", "port": 80}]})
    subset = {"addresses": [{"ip": "10.1.2.3", "targetRef": {"kind": "Pod", "name": "gone"}}], "ports": [{"name": "web", "port": 8080}]}
    await core.create("endpoints", "Endpoints", "s", subsets=[subset])
    code, body = await core.client.raw("GET", "/api/v1/namespaces/default/services/s:web/proxy/")
    assert (code, orjson.loads(body)["message"]) == (503, 'no endpoints available for service "s:web"')
    code, body = await core.client.raw("GET", "/api/v1/namespaces/default/services/s:81/proxy/")
    assert (code, orjson.loads(body)["message"]) == (400, 'no service port 81 found for service "s"')
