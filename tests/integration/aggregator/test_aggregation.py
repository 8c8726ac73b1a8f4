"""The life of an external API server: it is registered, serves, fails, recovers and is removed."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Final

import orjson
import pytest

from integration.aggregator.conftest import External, World
from support.http2_go_server import ONLY_HTTP2, go_server
from support.openapi import document_of
from tetrapod.aggregator.apiservice import APISERVICES
from tetrapod.aggregator.service_informers import ENDPOINT_SLICES, SERVICES
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.openapi.document_chunks import JsonForm
from tetrapod.generic.openapi.v2 import swagger
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.requestinfo import parse

NAME = f"v1.{External.GROUP}"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def api_service(port: int) -> Object:
    spec = {
        "group": External.GROUP,
        "version": "v1",
        "groupPriorityMinimum": 10,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": "api", "port": port},
    }
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": NAME}, "spec": spec}


def service() -> Object:
    spec = {"type": "ExternalName", "externalName": "localhost"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "api", "namespace": "default"}, "spec": spec}


async def join(world: World, external: External) -> None:
    await world.client.create(SERVICES, "default", service())
    await world.client.create(APISERVICES, "", api_service(external.port))

    async def passed() -> bool:
        return await world.reason(NAME) == "Passed"

    await world.until(passed)


async def groups(world: World) -> list[str]:
    _, found = await world.get("/apis")
    return [group["name"] for group in found["groups"]]


async def freshness(world: World) -> str:
    _, found = await world.get("/apis", accept=AGGREGATED)
    item = next((i for i in found["items"] if i["metadata"]["name"] == External.GROUP), None)
    return str(item and item["versions"][0]["freshness"])


async def test_local_groups_are_registered_and_discovered(world: World) -> None:
    async def registered() -> bool:
        return await groups(world) == ["apiregistration.k8s.io", "discovery.k8s.io"]

    await world.until(registered)
    assert await world.reason("v1.") == "Local"
    _, found = await world.get("/apis", accept=AGGREGATED)
    assert [(i["metadata"]["name"], i["versions"][0]["freshness"]) for i in found["items"]] == [
        ("apiregistration.k8s.io", "Current"),
        ("discovery.k8s.io", "Current"),
    ]
    assert (await world.get("/api/v1"))[1]["resources"][0]["name"] == "services"
    assert (await world.get("/apis/discovery.k8s.io"))[1]["versions"] == [
        {"groupVersion": "discovery.k8s.io/v1", "version": "v1"}
    ]
    assert await world.get("/apis/nope.example.com") == (404, b"404 page not found\n")


async def test_a_local_group_that_has_lost_its_api_services_is_served_but_not_listed(world: World) -> None:
    await world.until(lambda: _is(world, "v1.discovery.k8s.io", "Local"))
    await world.client.delete(APISERVICES, "", "v1.discovery.k8s.io")
    assert await groups(world) == ["apiregistration.k8s.io"]
    _, found = await world.get("/apis", accept=AGGREGATED)
    assert [item["metadata"]["name"] for item in found["items"]] == ["apiregistration.k8s.io", "discovery.k8s.io"]
    assert (await world.get("/apis/discovery.k8s.io"))[1]["preferredVersion"]["version"] == "v1"


async def _is(world: World, name: str, reason: str) -> bool:
    return await world.reason(name) == reason


async def test_a_server_that_speaks_no_http_1_is_reached_over_http_2(world: World, pki: Pki) -> None:
    with go_server(pki, ONLY_HTTP2) as port:
        await world.client.create(SERVICES, "default", service())
        await world.client.create(APISERVICES, "", api_service(port))
        await world.until(lambda: _is(world, NAME, "Passed"))
        status, headers, body = await world.service.pool.fetch(
            "PUT", f"http://127.0.0.1:{world.front.port}/apis/{External.GROUP}/v1/flunders/a", b"{}"
        )
        received = dict(headers)
    assert (status, body, received[b"x-version"], received[b"x-user"]) == (200, b"{}", b"HTTP/2.0", b"alice")


async def test_requests_reach_the_external_server_with_the_identity_of_their_user(
    world: World, external: External
) -> None:
    await join(world, external)
    status, found = await world.get(
        f"/apis/{External.GROUP}/v1/namespaces/default/flunders", **{"X-Remote-User": "root", "Authorization": "x"}
    )
    headers = found["headers"]
    assert (status, found["certificate"], headers["x-remote-user"], headers["x-remote-group"]) == (
        200,
        True,
        "alice",
        "staff",
    )
    assert headers["x-remote-extra-example.com%2fkey"] == "v"
    assert "authorization" not in headers
    assert (await world.get(f"/apis/{External.GROUP}/v1/flunders/watch"))[1] == b'{"n":0}\n{"n":1}\n{"n":2}\n'


async def test_paths_reach_the_external_server_as_the_filters_parsed_them(world: World, external: External) -> None:
    """The backend must parse path and query as the aggregator did, and forged forwarding headers are dropped."""
    await join(world, external)
    external.cors = True
    path = f"/apis/{External.GROUP}/v1/a%2Fb%41/../c%20(d)?b=2&a=1&c;x=1&a=%20&d=%zz"
    url, evil = f"http://127.0.0.1:{world.front.port}{path}", {"X-Forwarded-Host": "evil", "X-Forwarded-Uri": "/"}
    _, headers, body = await world.service.pool.fetch("GET", url, headers=evil)
    seen = orjson.loads(body)
    assert (seen["target"], seen["query"]) == (f"/apis/{External.GROUP}/v1/a/bA/../c%20%28d%29", "a=1&a=+&b=2")
    assert seen["headers"]["x-forwarded-uri"] == f"/apis/{External.GROUP}/v1/a/c%20%28d%29"
    assert (seen["headers"]["x-forwarded-host"], seen["headers"]["x-forwarded-proto"]) == (
        f"localhost:{external.port}",
        "https",
    )
    assert not [name for name, _ in headers if name.startswith(b"access-control")]


async def test_an_upgrade_without_a_101_response_is_rejected(world: World, external: External) -> None:
    await join(world, external)
    reader, writer = await asyncio.open_connection("127.0.0.1", world.front.port)
    head = f"GET /apis/{External.GROUP}/v1/flunders HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: spam\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.readuntil(b"invalid upgrade response: status code 200\n")
    assert answer.startswith(b"HTTP/1.1 503 ")
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("rejecting", [True, False])
async def test_redirects_of_backends_are_rejected_unless_allowed(
    world: World, external: External, rejecting: bool
) -> None:
    """--aggregator-reject-forwarding-redirect."""
    await join(world, external)
    external.redirect = target = b"https://elsewhere.example.com/x"
    status, headers, body = await world.service.pool.fetch(
        "GET", f"http://127.0.0.1:{world.front.port}/apis/{External.GROUP}/v1/flunders"
    )
    if rejecting:
        assert (status, body) == (502, b"the backend attempted to redirect this request, which is not permitted")
        assert b"location" not in dict(headers)
    else:
        assert (status, dict(headers)[b"location"]) == (307, target)


@pytest.mark.parametrize("routing", [True])
async def test_requests_are_distributed_over_ready_endpoints(
    world: World, external: External, tls: ServingTLS, routing: bool
) -> None:
    """--enable-aggregator-routing: the addresses of EndpointSlices are used instead of the cluster IP, which nothing
    serves here.
    """
    second = External()
    beside = HttpServer(second.handle, host="127.0.0.2", port=external.port, tls=tls)
    await beside.start()
    ports = [{"name": "https", "port": 443}]
    spec = {"clusterIP": "192.0.2.1", "ports": ports, "ipFamilies": ["IPv4"]}
    await world.client.create(SERVICES, "default", {**service(), "spec": spec})
    endpoints = [{"addresses": [f"127.0.0.{number}"], "conditions": {"ready": True}} for number in (1, 2)]
    slices = {
        "metadata": {"name": "api-1", "labels": {"kubernetes.io/service-name": "api"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": external.port}],
        "endpoints": endpoints,
    }
    made = await world.client.create(ENDPOINT_SLICES, "default", slices)
    await world.client.create(APISERVICES, "", api_service(443))

    async def passed() -> bool:
        return await world.reason(NAME) == "Passed"

    async def answered_by() -> set[External]:
        both = (external, second)
        for one in both:
            one.seen.clear()
        for _ in range(20):
            assert (await world.get(f"/apis/{External.GROUP}/v1/flunders"))[0] == 200
        return {one for one in both if any(request.path.endswith("/flunders") for request in one.seen)}

    async def by_the_second_alone() -> bool:
        return await answered_by() == {second}

    async def by_both() -> bool:
        return await answered_by() == {external, second}

    await world.until(passed)
    await world.until(by_both)
    made["endpoints"][0]["conditions"]["ready"] = False
    await world.client.update(ENDPOINT_SLICES, "default", made)
    await world.until(by_the_second_alone)
    await beside.stop(0.2)


async def test_discovery_and_openapi_include_the_external_server(world: World, external: External) -> None:
    await join(world, external)

    async def current() -> bool:
        return await freshness(world) == "Current"

    await world.until(current)
    _, found = await world.get("/apis", accept=AGGREGATED)
    assert [resource["resource"] for resource in found["items"][-1]["versions"][0]["resources"]] == ["flunders"]
    assert External.GROUP in await groups(world)
    name = f"apis/{External.GROUP}/v1"
    assert await world.service.external_openapi.index() == {name: "ABC", f"apis/{External.GROUP}": "DEF"}
    assert await document_of(world.service.external_openapi, name) == orjson.loads(external.openapi)


_INVALID_URL: Final = {"paths": {f"apis/{External.GROUP}/v1": {"serverRelativeURL": "//[?hash=1"}}}


@pytest.mark.parametrize(
    "failing",
    [
        {"/openapi/v3": Response(503, [])},
        {"/openapi/v3": Response(200, [], b"nope")},
        {"/openapi/v3": Response(200, [], json.dumps(_INVALID_URL).encode())},
        {"/openapi/v3": Response(404, []), "/openapi/v2": Response(503, [])},
    ],
    ids=["error", "malformed", "invalid-url", "swagger-error"],
)
async def test_an_index_that_cannot_be_read_is_fetched_again_with_backoff(
    world: World, external: External, failing: dict[str, Response]
) -> None:
    external.failing = failing
    await join(world, external)
    source = world.service.external_openapi
    external.seen.clear()
    assert await asyncio.gather(*(source.index() for _ in range(50))) == [{}] * 50
    assert [request.path for request in external.seen if request.path.startswith("/openapi/")] == list(failing)
    external.failing = {}

    async def listed() -> bool:
        return sorted(await source.index()) == [f"apis/{External.GROUP}", f"apis/{External.GROUP}/v1"]

    await world.until(listed)


@pytest.mark.parametrize(
    "broken",
    [
        "nope",
        "[]",
        "{}",
        '{"info": {}, "paths": []}',
        '{"info": {}, "paths": {"/x": {"get": {}}}}',
        '{"info": {}, "paths": {"/x": {"put": {"responses": {}, "requestBody": {"content": {}}}}}}',
        '{"info": {}, "paths": {}, "components": {"schemas": {"io.x": 1}}}',
        '{"info": {}, "paths": {}, "components": {"schemas": {"io.x": {"properties": ["a"]}}}}',
    ],
)
async def test_an_invalid_openapi_document_does_not_affect_others(
    world: World, external: External, broken: str
) -> None:
    await join(world, external)
    external.openapi = broken.encode()
    source = world.service.external_openapi
    assert sorted(await source.index()) == [f"apis/{External.GROUP}", f"apis/{External.GROUP}/v1"]
    assert await document_of(source, f"apis/{External.GROUP}/v1") is None
    assert json.loads(b"".join(await swagger(source, JsonForm())))["paths"] == {}


SWAGGER: Object = {
    "swagger": "2.0",
    "info": {"title": "Old", "version": "unversioned"},
    "paths": {
        "/version/": {"get": {"produces": ["application/json"], "responses": {"200": {"description": "OK"}}}},
        f"/apis/{External.GROUP}/v1/flunders/{{name}}": {
            "parameters": [{"$ref": "#/parameters/name-1"}],
            "put": {
                "operationId": "replaceFlunder",
                "consumes": ["*/*"],
                "produces": ["application/json", "application/yaml"],
                "parameters": [
                    {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/old.Flunder"}},
                    {"name": "dryRun", "in": "query", "type": "string", "uniqueItems": True},
                ],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/old.Flunder"}}},
                "x-kubernetes-action": "put",
                "schemes": ["https"],
            },
        },
    },
    "parameters": {"name-1": {"name": "name", "in": "path", "required": True, "type": "string", "uniqueItems": True}},
    "definitions": {
        "old.Flunder": {
            "type": "object",
            "properties": {"spec": {"$ref": "#/definitions/old.Spec", "description": "What is wanted."}},
        },
        "old.Spec": {"type": "object", "additionalProperties": {"$ref": "#/definitions/old.Spec"}},
        "old.Info": {"type": "object"},
    },
    "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
}
"""The document of an API server that knows Swagger 2.0 only."""


async def test_the_swagger_document_of_an_old_server_is_converted_to_openapi_v3(
    world: World, external: External
) -> None:
    """As kube-apiserver 1.37.1 converts it, but with the shared parameters that it leaves out."""
    external.swagger = orjson.dumps(SWAGGER)
    await join(world, external)
    source = world.service.external_openapi
    name = f"apis/{External.GROUP}/v1"
    index = await source.index()
    assert list(index) == [name]
    assert len(index[name]) == 128
    document = await document_of(source, name)
    flunder = {"$ref": "#/components/schemas/old.Flunder"}
    string = {"type": "string", "uniqueItems": True}
    assert document == {
        "openapi": "3.0.0",
        "info": SWAGGER["info"],
        "paths": {
            "/version/": {"get": {"responses": {"200": {"description": "OK"}}}},
            f"/{name}/flunders/{{name}}": {
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": string}],
                "put": {
                    "operationId": "replaceFlunder",
                    "x-kubernetes-action": "put",
                    "requestBody": {"content": {"*/*": {"schema": flunder}}},
                    "parameters": [{"name": "dryRun", "in": "query", "schema": string}],
                    "responses": {
                        "200": {
                            "description": "OK",
                            "content": {
                                "application/json": {"schema": flunder},
                                "application/yaml": {"schema": flunder},
                            },
                        }
                    },
                },
            },
        },
        "components": {
            "schemas": {
                "old.Flunder": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "description": "What is wanted.",
                            "allOf": [{"$ref": "#/components/schemas/old.Spec"}],
                        }
                    },
                },
                "old.Spec": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/old.Spec"}},
                "old.Info": {"type": "object"},
            },
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    }
    merged = json.loads(b"".join(await swagger(source, JsonForm())))
    assert list(merged["paths"]) == [f"/{name}/flunders/{{name}}"]  # as upstream, not the paths of other groups
    put = merged["paths"][f"/{name}/flunders/{{name}}"]["put"]
    assert put["responses"]["200"]["schema"] == {"$ref": "#/definitions/old.Flunder"}
    assert merged["definitions"]["old.Spec"] == SWAGGER["definitions"]["old.Spec"]


async def test_a_swagger_document_is_used_if_the_index_lacks_the_group_version(
    world: World, external: External
) -> None:
    path = f"/apis/{External.GROUP}/v1/"
    answer = Response(200, [(b"content-type", b"application/json")], json.dumps({"paths": {path: {}}}).encode())
    external.failing |= {"/openapi/v3": answer, "/openapi/v2": answer}
    await join(world, external)
    source = world.service.external_openapi
    assert json.loads(b"".join(await swagger(source, JsonForm())))["paths"] == {path: {}}


@pytest.mark.parametrize("broken", ["nope", "[]", "{}", '{"info": {}, "paths": 1}', '{"info": {}, "definitions": [1]}'])
async def test_an_invalid_swagger_document_does_not_affect_others(
    world: World, external: External, broken: str
) -> None:
    external.swagger = broken.encode()
    await join(world, external)
    source = world.service.external_openapi
    assert await document_of(source, f"apis/{External.GROUP}/v1") is None
    assert json.loads(b"".join(await swagger(source, JsonForm())))["paths"] == {}


async def test_a_broken_server_is_marked_stale_and_affects_no_other(world: World, external: External) -> None:
    external.broken = True
    await world.client.create(SERVICES, "default", service())
    await world.client.create(APISERVICES, "", api_service(external.port))

    async def failed() -> bool:
        return await world.reason(NAME) == "FailedDiscoveryCheck"

    await world.until(failed)
    assert await freshness(world) == "Stale"
    assert await world.get(f"/apis/{External.GROUP}/v1/flunders") == (503, b"service unavailable\n")
    assert (await world.get("/api/v1/services"))[0] == 200
    external.broken = False

    async def back() -> bool:
        return await freshness(world) == "Current"

    await world.until(back)


async def test_discovery_does_not_depend_on_the_availability_check(world: World, external: External) -> None:
    external.failing[f"/apis/{External.GROUP}/v1"] = Response(500, [], b"only aggregated discovery")
    await world.client.create(SERVICES, "default", service())
    await world.client.create(APISERVICES, "", api_service(external.port))

    async def failed() -> bool:
        return await world.reason(NAME) == "FailedDiscoveryCheck"

    async def discovered() -> bool:
        return await freshness(world) == "Current"

    await world.until(failed)
    await world.until(discovered)


async def test_an_invalid_ca_bundle_leaves_the_status_unchanged(world: World, external: External) -> None:
    await join(world, external)
    obj = await world.client.get(APISERVICES, "", NAME)
    obj["spec"] |= {"insecureSkipTLSVerify": False, "caBundle": base64.b64encode(b"hello").decode()}
    await world.client.update(APISERVICES, "", obj)

    async def rejected() -> bool:
        text = b"unable to load root certificates: unable to parse bytes as PEM block\n"
        return await world.get(f"/apis/{External.GROUP}/v1/flunders") == (500, text)

    await world.until(rejected)
    assert await world.reason(NAME) == "Passed"


async def test_a_server_with_an_endless_discovery_response_is_available(world: World, external: External) -> None:
    external.endless = True
    await join(world, external)


async def test_it_is_unavailable_without_its_service_and_recovers_with_it(world: World, external: External) -> None:
    await world.client.create(APISERVICES, "", api_service(external.port))

    async def missing() -> bool:
        return await world.reason(NAME) == "ServiceNotFound"

    await world.until(missing)
    await world.client.create(SERVICES, "default", service())

    async def passed() -> bool:
        return await world.reason(NAME) == "Passed"

    await world.until(passed)


async def test_a_deleted_api_service_is_not_served_any_more(world: World, external: External) -> None:
    await join(world, external)
    await world.client.delete(APISERVICES, "", NAME)
    assert External.GROUP not in await groups(world)
    assert await world.get(f"/apis/{External.GROUP}") == (404, b"404 page not found\n")


async def test_a_request_target_that_is_not_a_path_is_not_found(world: World) -> None:
    assert (await world.service.director(Request("GET", "*"))).status == 404


@pytest.mark.parametrize(
    "path", ["//api/v1/pods", "///apis/apps/v1/deployments", "/apis//apps/v1/deployments", "//apis/apps"]
)
async def test_leading_double_slashes_match_no_resource(world: World, path: str) -> None:
    request = Request("GET", path)
    request.info = parse("GET", path)
    answer = await world.service.director(request)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


async def test_the_aggregator_is_ready_when_discovery_has_every_local_group(world: World) -> None:
    _, groups = await world.get("/apis")
    assert [group["name"] for group in groups["groups"]] == ["apiregistration.k8s.io", "discovery.k8s.io"]
    assert await world.reason("v1.discovery.k8s.io") == "Local"
    await world.service.registration.check()


async def test_a_server_can_only_publish_its_own_group(world: World, external: External) -> None:
    """It claims groups of other servers in discovery and in a response.

    Both are ignored, and it gets no credentials.
    """
    honest = external._aggregated()
    stolen = {
        "resource": "services",
        "responseKind": {"group": "", "version": "v1", "kind": "Stolen"},
        "scope": "Namespaced",
        "verbs": ["get"],
    }
    lies = [
        {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": [stolen], "freshness": "Current"}]}
        for name in ("discovery.k8s.io", "apiregistration.k8s.io", "rbac.authorization.k8s.io", "")
    ]
    external._aggregated = lambda: {**honest, "items": [*lies, *honest["items"]]}  # type: ignore[method-assign]
    await join(world, external)

    async def current() -> bool:
        return await freshness(world) == "Current"

    await world.until(current)
    _, found = await world.get("/apis", accept=AGGREGATED)
    assert [item["metadata"]["name"] for item in found["items"]].count("rbac.authorization.k8s.io") == 0
    assert "Stolen" not in str(found) and "Stolen" not in str((await world.get("/api", accept=AGGREGATED))[1])
    assert {resource["kind"] for resource in (await world.get("/api/v1"))[1]["resources"]} == {
        "Service",
        "ServiceProxyOptions",
    }
    assert not [
        request for request in external.seen if any(name.lower() == b"authorization" for name, _ in request.headers)
    ]


async def test_a_probe_names_no_accepted_media_type(world: World, external: External) -> None:
    await join(world, external)
    probes = [dict(request.headers) for request in external.seen if request.path == f"/apis/{External.GROUP}/v1"]
    assert probes
    assert not [headers for headers in probes if b"accept" in headers]
