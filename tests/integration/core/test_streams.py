"""Requests that core passes on to kubelets, pods and services."""

from __future__ import annotations

import orjson
import pytest

from integration.core.conftest import Core, Serve, v1
from integration.http.conftest import Client
from integration.http.test_answers import upgrading
from integration.http.test_requests import echo
from tetrapod.core.subresources.locations import UNVERIFIED, Backends
from tetrapod.core.v1.nodes import definition as nodes
from tetrapod.core.v1.services.proxy import ServiceProxyRest
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.registry.context import Context
from tetrapod.machinery import requestinfo
from tetrapod.machinery.gvk import GroupVersionResource
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo


@pytest.fixture
def loopback_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow proxying to loopback, which is rejected for nodes and is the only address that a test has."""

    async def nothing(host: str) -> None:
        pass

    monkeypatch.setattr(nodes, "check_host", nothing)


async def test_a_log_is_read_from_the_kubelet(core: Core, serve: Serve, tls: ServingTLS) -> None:
    async def kubelet(request: Request) -> Response:
        return Response(200, [], f"{request.raw_path}?{request.query_string}".encode())

    await core.node("n", (await serve(kubelet, tls)).port)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw(
        "GET", "/api/v1/namespaces/default/pods/p/log?tailLines=5&follow=false&timestamps=true"
    )
    assert (code, body) == (200, b"/containerLogs/default/p/c?tailLines=5&timestamps=true")


@pytest.mark.parametrize(("status", "reason"), [(400, "BadRequest"), (404, "NotFound"), (500, "InternalError")])
async def test_a_rejection_by_the_kubelet_is_passed_on(
    core: Core, serve: Serve, tls: ServingTLS, status: int, reason: str
) -> None:
    async def kubelet(request: Request) -> Response:
        return Response(status, [], b"no such container")

    await core.node("n", (await serve(kubelet, tls)).port)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw("GET", "/api/v1/namespaces/default/pods/p/log")
    answer = orjson.loads(body)
    assert (code, answer["reason"]) == (status, reason)
    assert "no such container" in answer["message"] + str(answer.get("details"))


@pytest.mark.usefixtures("loopback_allowed")
async def test_an_unreachable_kubelet_is_an_error(core: Core) -> None:
    await core.node("n", 1)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw("GET", "/api/v1/namespaces/default/pods/p/log")
    url = "https://127.0.0.1:1/containerLogs/default/p/c"
    assert (code, orjson.loads(body)["message"]) == (
        500,
        f'Get "{url}": dial tcp 127.0.0.1:1: connect: connection refused',
    )
    code, body = await core.client.raw("GET", "/api/v1/nodes/n/proxy/healthz")
    text = "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused"
    assert (code, orjson.loads(body)["message"]) == (503, text)


async def test_a_missing_node_is_reported_with_the_requested_kind(core: Core) -> None:
    await core.pod("p", nodeName="n")
    for path, kind in (
        ("namespaces/default/pods/p/log", "pods"),
        ("namespaces/default/pods/p/exec?command=ls", "pods"),
        ("nodes/n/proxy/", "nodes"),
    ):
        code, body = await core.client.raw("GET", f"/api/v1/{path}")
        assert (code, orjson.loads(body)["message"]) == (404, f'{kind} "n" not found')


async def test_exec_requires_an_upgrade(core: Core) -> None:
    await core.node("n", 1)
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw("POST", "/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=true")
    assert (code, orjson.loads(body)["message"]) == (400, "Upgrade request required")


async def test_exec_streams_are_connected_to_the_kubelet(core: Core, serve: Serve, tls: ServingTLS) -> None:
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
    client.send(
        (
            f"POST {target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
            "Content-Length: 0\r\n\r\n"
        ).encode()
    )
    assert (await client.head())[0] == 101
    client.send(b"hello")
    assert await client.reader.readexactly(5) == b"HELLO"
    assert seen == ["/exec/default/p/c?command=ls&command=-l&output=1"]
    await client.close()


@pytest.mark.usefixtures("loopback_allowed")
async def test_the_node_proxy_drops_credentials(core: Core, serve: Serve, tls: ServingTLS) -> None:
    await core.node("n", (await serve(echo, tls)).port)
    path = "/api/v1/nodes/n/proxy/metrics/cadvisor"
    code, body = await core.client.raw(
        "GET", f"{path}?a=b", headers={"x-remote-user": "root", "authorization": "Bearer t", "x-mine": "1"}
    )
    found = orjson.loads(body)
    headers = dict(found["headers"])
    assert (code, found["raw"], found["query"]) == (200, "/metrics/cadvisor", "a=b")
    assert headers["x-mine"] == "1"
    assert headers["x-forwarded-uri"] == path
    assert not {"authorization", "x-remote-user", "x-remote-group"} & headers.keys()


@pytest.mark.usefixtures("loopback_allowed")
async def test_redirects_are_rewritten_to_the_proxy(core: Core, serve: Serve, tls: ServingTLS) -> None:
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


async def test_pods_are_not_proxied_on_loopback_or_link_local_addresses(core: Core) -> None:
    await core.pod("p")
    for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1"):
        status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
        await core.client.patch(v1("pods"), "default", "p", status, subresource="status")
        code, body = await core.client.raw("GET", "/api/v1/namespaces/default/pods/p:80/proxy/")
        assert (code, orjson.loads(body)["message"]) == (400, "address not allowed")


async def test_the_node_proxy_does_not_reach_loopback(core: Core) -> None:
    await core.node("n", 1)
    code, body = await core.client.raw("GET", "/api/v1/nodes/n/proxy/healthz")
    assert (code, orjson.loads(body)["message"]) == (400, "address not allowed")


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
async def test_the_node_proxy_rejects_host_names_that_cannot_be_looked_up(core: Core, host: str) -> None:
    await core.node("n", 1)
    node = {"status": {"addresses": [{"type": "Hostname", "address": host}]}}
    await core.client.patch(v1("nodes"), "", "n", node, type="merge", subresource="status")
    code, body = await core.client.raw("GET", "/api/v1/nodes/n/proxy/healthz")
    assert (code, orjson.loads(body)["message"]) == (400, f"lookup {host}: no such host")


async def test_the_service_proxy_reaches_only_its_own_pods(core: Core) -> None:
    await core.create("services", "Service", "s", spec={"ports": [{"name": "web", "port": 80}]})
    await core.pod("p")
    ip = {"status": {"podIP": "192.0.2.9", "podIPs": [{"ip": "192.0.2.9"}]}}
    await core.client.patch(v1("pods"), "default", "p", ip, subresource="status")
    other = {"addresses": ["10.1.2.3"], "targetRef": {"kind": "Pod", "name": "p", "namespace": "default"}}
    late = {
        "addresses": ["192.0.2.9"],
        "conditions": {"ready": False},
        "targetRef": {"kind": "Pod", "name": "p", "namespace": "default"},
    }
    labels = {"kubernetes.io/service-name": "s"}
    found = {"addressType": "IPv4", "endpoints": [other, late], "ports": [{"name": "web", "port": 8080}]}
    slices = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
    await core.client.create(slices, "default", {"metadata": {"name": "s-1", "labels": labels}, **found})
    rest = ServiceProxyRest(core.service.server.stores, Backends(core.service.backends, UNVERIFIED), "IPv4")
    for name in ("s:web", "s:80", "s", "x"):
        with pytest.raises(StatusError, match=f'no endpoints available for service "{name[0]}"') as raised:
            await rest.locate(Context(namespace="default"), name)
        assert raised.value.code == 503
    await core.client.patch(slices, "default", "s-1", {"endpoints": [other, {**late, "conditions": {"ready": True}}]})
    for name in ("s:web", "http:s:80"):
        assert (await rest.locate(Context(namespace="default"), name)).authority == "192.0.2.9:8080"
    with pytest.raises(StatusError, match='no service port 81 found for service "s"'):
        await rest.locate(Context(namespace="default"), "s:81")


async def test_the_service_proxy_prefers_the_ip_family_of_the_cluster(core: Core) -> None:
    await core.create("services", "Service", "s", spec={"ports": [{"name": "web", "port": 80}]})
    await core.pod("p")
    addresses = {"IPv4": "192.0.2.9", "IPv6": "2001:db8::9"}
    ips = {"status": {"podIP": "192.0.2.9", "podIPs": [{"ip": address} for address in addresses.values()]}}
    await core.client.patch(v1("pods"), "default", "p", ips, subresource="status")
    slices = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
    target = {"kind": "Pod", "name": "p", "namespace": "default"}
    for family, address in addresses.items():
        metadata = {"name": f"s-{family.lower()}", "labels": {"kubernetes.io/service-name": "s"}}
        endpoints = [{"addresses": [address], "targetRef": target}]
        ports = [{"name": "web", "port": 8080}]
        found = {"metadata": metadata, "addressType": family, "endpoints": endpoints, "ports": ports}
        await core.client.create(slices, "default", found)
    stores, backends = core.service.server.stores, Backends(core.service.backends, UNVERIFIED)
    for family, authority in (("IPv4", "192.0.2.9:8080"), ("IPv6", "[2001:db8::9]:8080")):
        rest = ServiceProxyRest(stores, backends, family)
        assert (await rest.locate(Context(namespace="default"), "s:web")).authority == authority
    await core.client.delete(slices, "default", "s-ipv6")
    assert (await rest.locate(Context(namespace="default"), "s:web")).authority == "192.0.2.9:8080"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("portforward?ports=abc", 'cannot convert to []int32: strconv.ParseUint: parsing "abc": invalid syntax'),
        ("portforward?ports=", 'cannot convert to []int32: strconv.ParseUint: parsing "": invalid syntax'),
        (
            "portforward?ports=1,65536",
            'cannot convert to []int32: strconv.ParseUint: parsing "65536": value out of range',
        ),
        ("log?sinceTime=x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("log?tailLines=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
async def test_unknown_options_are_rejected(core: Core, path: str, message: str) -> None:
    await core.pod("p", nodeName="n")
    code, body = await core.client.raw(
        "GET" if path.startswith("log") else "POST", f"/api/v1/namespaces/default/pods/p/{path}"
    )
    assert (code, orjson.loads(body)["message"]) == (400, message)
