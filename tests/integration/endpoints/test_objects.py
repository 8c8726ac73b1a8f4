"""Create, read, update and delete an object through the endpoints."""

from __future__ import annotations

from integration.endpoints.serving import Api, serving
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.authorization.interface import Attributes as Asked
from tetrapod.generic.authorization.interface import AuthorizationResult, Decision

MAPS = "/api/v1/namespaces/n/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


async def test_create_get_update_delete(api: Api) -> None:
    created = await api("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert created.status == 201
    assert created.json["kind"] == "ConfigMap"
    assert created.json["metadata"]["managedFields"][0]["manager"] == "test"
    got = await api("GET", f"{MAPS}/a")
    assert got.body == created.body
    updated = await api("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "w"}})
    assert (updated.status, updated.json["data"]) == (200, {"k": "w"})
    deleted = await api("DELETE", f"{MAPS}/a")
    assert deleted.json["details"] == {"name": "a", "kind": "configmaps", "uid": created.json["metadata"]["uid"]}
    assert (await api("GET", f"{MAPS}/a")).status == 404


async def test_a_dry_run_stores_nothing(api: Api) -> None:
    answer = await api("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert answer.status == 201
    assert "resourceVersion" not in answer.json["metadata"]
    assert (await api("GET", f"{MAPS}/a")).status == 404


async def test_unknown_fields_warn_fail_or_are_ignored(api: Api) -> None:
    body = b'{"metadata":{"name":"a","x":1},"data":{"k":"1","k":"2"},"y":2}'
    warned = await api("POST", f"{MAPS}?dryRun=All", body)
    assert warned.warnings == ['unknown field "metadata.x"', 'duplicate field "data.k"', 'unknown field "y"']
    rejected = await api("POST", f"{MAPS}?fieldValidation=Strict", body)
    assert rejected.status == 400
    assert rejected.json["message"].startswith(
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field'
    )
    ignored = await api("POST", f"{MAPS}?fieldValidation=Ignore", body)
    assert (ignored.status, ignored.warnings) == (201, [])


async def test_a_body_of_another_kind_version_or_name_is_rejected(api: Api) -> None:
    secret = await api("POST", MAPS, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}})
    assert "converting (v1.Secret) to (core.ConfigMap): unknown conversion" in secret.json["message"]
    old = await api(
        "POST", "/apis/apps/v1/namespaces/n/deployments", {"kind": "Deployment", "apiVersion": "apps/v1beta2"}
    )
    assert (
        old.json["message"]
        == "the API version in the data (apps/v1beta2) does not match the expected API version (apps/v1)"
    )
    name = await api("PUT", f"{MAPS}/a", {"metadata": {"name": "b"}})
    assert name.json["message"] == "the name of the object (b) does not match the name on the URL (a)"
    namespace = await api("POST", MAPS, {"metadata": {"name": "a", "namespace": "other"}})
    assert (
        namespace.json["message"]
        == "the namespace of the provided object does not match the namespace sent on the request"
    )


async def test_put_creates_only_if_the_strategy_allows_it(api: Api) -> None:
    assert (await api("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}})).status == 201
    assert (await api("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}})).status == 404


async def test_put_as_create_needs_the_create_permission() -> None:
    class Nobody:
        async def authorize(self, attributes: Asked) -> AuthorizationResult:
            return AuthorizationResult(Decision.NO_OPINION)

    async with serving(authorizer=Nobody()) as api:
        rejected = await api("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}})
    assert rejected.status == 403
    assert 'cannot create resource "leases"' in rejected.json["message"]


async def test_yaml_is_accepted_and_returned(api: Api) -> None:
    body = b"metadata: {name: a}\ndata:\n  text: |\n    two\n    lines\n"
    answer = await api("POST", MAPS, body, content_type="application/yaml", accept="application/yaml")
    assert answer.headers["content-type"] == "application/yaml"
    assert b"text: |\n    two\n    lines" in answer.body


async def test_admission_sees_every_write_in_its_phases() -> None:
    seen: list[tuple[str, str, str, bool]] = []

    class Recorder(Plugin):
        name = "Recorder"

        async def admit(self, attributes: Attributes) -> None:
            seen.append(("admit", attributes.operation, attributes.name, attributes.old_object is not None))
            if attributes.object is not None:
                attributes.object["metadata"].setdefault("labels", {})["seen"] = "yes"

        async def validate(self, attributes: Attributes) -> None:
            seen.append(("validate", attributes.operation, attributes.name, attributes.old_object is not None))
            if attributes.operation == "DELETE" and (attributes.old_object or {}).get("data"):
                raise forbidden(attributes, "it has data")

    async with serving(Recorder()) as api:
        created = await api("POST", MAPS, {"metadata": {"generateName": "a-"}, "data": {"k": "v"}})
        name = created.json["metadata"]["name"]
        await api("PATCH", f"{MAPS}/{name}", {"data": {"k": "w"}}, content_type=MERGE)
        await api(
            "PATCH",
            f"{MAPS}/b?fieldManager=m",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
            content_type=APPLY,
        )
        rejected = await api("DELETE", f"{MAPS}/{name}")
    assert created.json["metadata"]["labels"] == {"seen": "yes"}
    assert rejected.json["message"] == f'configmaps "{name}" is forbidden: it has data'
    assert seen == [
        ("admit", "CREATE", "", False),
        ("validate", "CREATE", name, False),
        ("admit", "UPDATE", name, True),
        ("validate", "UPDATE", name, True),
        ("admit", "CREATE", "b", False),
        ("validate", "CREATE", "b", False),
        ("admit", "DELETE", name, True),
        ("validate", "DELETE", name, True),
    ]


async def test_deprecated_versions_warn_also_for_missing_objects(api: Api) -> None:
    answer = await api("GET", "/api/v1/nodes/none")
    assert (answer.status, answer.warnings) == (404, ["v1 Node is old"])
