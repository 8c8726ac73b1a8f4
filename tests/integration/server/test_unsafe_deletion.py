"""Objects in the store that cannot be read, and their deletion (AllowUnsafeMalformedObjectDeletion).

The expected answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pytest

from support.definitions import definition
from support.etcd import Etcd, running_etcd
from support.forms import ETCD, STOCK, serving_over
from support.https_client import HttpsClient, Reply

OPTION: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
OPTIONS: Final = {"kind": "DeleteOptions", "apiVersion": "v1", OPTION: True}
GATE: Final = "--feature-gates=AllowUnsafeMalformedObjectDeletion"
AUDIT: Final = "apiserver.k8s.io/unsafe-delete-ignore-read-error"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ENCRYPTED: Final = b"k8s:enc:aescbc:v1:lost:0123456789"
REASON: Final = "identity transformer tried to read encrypted data"
MESSAGE: Final = f"data from the storage is not transformable revision=0: {REASON}"


class Kind(NamedTuple):
    """A resource, its path, and the prefix of its keys in the store."""

    resource: str
    path: str
    prefix: str
    type: dict[str, str]

    def key(self, name: str) -> str:
        return f"/registry/{self.prefix}/default/{name}"

    @property
    def group(self) -> str:
        return self.resource.partition(".")[2]


SECRETS: Final = Kind("secrets", "/api/v1/namespaces/default/secrets", "secrets", {})
WIDGETS: Final = Kind(
    "widgets.example.com",
    "/apis/example.com/v1/namespaces/default/widgets",
    "example.com/widgets",
    {"apiVersion": "example.com/v1", "kind": "Widget"},
)
KINDS: Final = pytest.mark.parametrize("kind", [SECRETS, WIDGETS], ids=lambda kind: kind.resource)


class Setting(NamedTuple):
    """A running server, its store, and its audit log."""

    client: HttpsClient
    etcd: Etcd
    log: Path

    def create(self, kind: Kind, name: str, **metadata: Any) -> None:
        reply = self.client.call("POST", kind.path, {**kind.type, "metadata": {"name": name, **metadata}})
        assert reply.status == 201, reply.body

    def damage(self, kind: Kind, name: str, value: bytes = ENCRYPTED) -> None:
        """Replace the stored value of an object, and wait until the server cannot read it."""
        assert self.etcd.value(kind.key(name)) != value
        self.etcd.put(kind.key(name), value)
        self.client.until(lambda reply: reply.status == 500, "GET", f"{kind.path}/{name}")

    def wait_for_cache(self, kind: Kind, name: str) -> None:
        """Wait until the watch cache has an object.

        A cache that was never filled cannot answer lists without a limit while a stored value is damaged (429).
        """
        version = self.client.call("GET", f"{kind.path}/{name}").body["metadata"]["resourceVersion"]
        list_path = f"{kind.path}?resourceVersion={version}"
        self.client.until(lambda reply: reply.status == 200, "GET", list_path, timeout=90)

    def annotations(self, path: str, user: str) -> list[dict[str, str]]:
        events = map(json.loads, self.log.read_text().splitlines())
        return [
            event["annotations"]
            for event in events
            if event["verb"] == "delete"
            and event["requestURI"].partition("?")[0] == path
            and event.get("impersonatedUser", {}).get("username") == user
        ]


def settings(directory: Path, form: str, *flags: str) -> Iterator[Setting]:
    policy, log = directory / "audit.yaml", directory / "audit.log"
    rules = [{"level": "Metadata"}]
    policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    audit = (f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking-strict")
    with (
        running_etcd(directory / "etcd") as etcd,
        serving_over(etcd, form, directory, *audit, *flags) as client,
    ):
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert client.call("POST", definitions, definition("example.com", "Widget")).status == 201
        client.until(lambda reply: reply.status == 200, "GET", WIDGETS.path, timeout=30)
        client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default", timeout=30)
        yield Setting(client, etcd, log)


@pytest.fixture(scope="module", params=[ETCD, STOCK])
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    yield from settings(tmp_path_factory.mktemp("enabled"), request.param)


@pytest.fixture(scope="module", params=[ETCD, STOCK])
def disabled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    yield from settings(tmp_path_factory.mktemp("disabled"), request.param, f"{GATE}=false")


def internal_error(text: str) -> Reply:
    message = f"Internal error occurred: {text}"
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    causes = [{"message": text}]
    return Reply(500, {**body, "reason": "InternalError", "details": {"causes": causes}, "code": 500}, [])


def corrupt(key: str) -> str:
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {MESSAGE}"


def lost(key: str) -> Reply:
    return internal_error(corrupt(key.removeprefix("/registry")))


@KINDS
def test_requests_for_an_unreadable_object_say_why(setting: Setting, kind: Kind) -> None:
    setting.create(kind, "lost")
    setting.damage(kind, "lost")
    path, error = f"{kind.path}/lost", lost(kind.key("lost"))
    call = setting.client.call
    assert call("GET", path) == error
    assert call("DELETE", path) == error
    assert call("DELETE", f"{path}?dryRun=All") == error
    assert call("DELETE", path, {**OPTIONS, OPTION: False}) == error
    body = {**kind.type, "metadata": {"name": "lost"}}
    assert call("POST", kind.path, body).status == 409
    assert call("DELETE", path, OPTIONS).status == 200


@KINDS
def test_an_unreadable_object_is_deleted_despite_its_finalizer(setting: Setting, kind: Kind) -> None:
    setting.create(kind, "held", finalizers=["example.com/held"])
    setting.damage(kind, "held")
    path, call = f"{kind.path}/held", setting.client.call
    details = {"name": "held", "kind": kind.type.get("kind", "Secret")}
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    assert call("DELETE", f"{path}?{OPTION}=true&dryRun=All") == Reply(200, {**success, "code": 200}, [])
    assert call("GET", path) == lost(kind.key("held"))
    assert call("DELETE", path, OPTIONS) == Reply(200, {**success, "code": 200}, [])
    assert call("GET", path).status == 404
    assert call("DELETE", path, OPTIONS).status == 404


@KINDS
def test_a_list_names_the_unreadable_objects(setting: Setting, kind: Kind) -> None:
    call = setting.client.call
    for name in ("a-lost", "b-good", "c-lost"):
        setting.create(kind, name)
    setting.wait_for_cache(kind, "c-lost")
    for name in ("a-lost", "c-lost"):
        setting.damage(kind, name)
    unlimited = call("GET", kind.path)
    assert (unlimited.status, unlimited.body["reason"]) == (500, "StorageReadError")
    reply = setting.client.until(lambda reply: reply.status == 500, "GET", f"{kind.path}?limit=500")
    keys = [kind.key(name) for name in ("a-lost", "c-lost")]
    causes = [{"reason": "UnexpectedServerResponse", "message": corrupt(key), "field": key} for key in keys]
    group = {"group": kind.group} if kind.group else {}
    text = f"failed to read one or more {kind.resource} from the storage: {corrupt(keys[0])} (and 1 more)"
    assert reply.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "StorageReadError",
        "details": {"name": "list", **group, "kind": kind.resource.partition(".")[0], "causes": causes},
        "code": 500,
    }
    assert call("GET", f"{kind.path}/b-good").status == 200
    for name in ("a-lost", "c-lost"):
        assert call("DELETE", f"{kind.path}/{name}", OPTIONS).status == 200
    reply = setting.client.until(lambda reply: reply.status == 200, "GET", kind.path, timeout=90)
    assert "b-good" in [item["metadata"]["name"] for item in reply.body["items"]]
    assert call("DELETE", f"{kind.path}/b-good").status == 200


@KINDS
def test_a_value_that_is_no_object_is_unreadable_too(setting: Setting, kind: Kind) -> None:
    setting.create(kind, "torn")
    value = setting.etcd.value(kind.key("torn"))
    setting.damage(kind, "torn", value[: len(value) // 2])
    reply = setting.client.call("GET", f"{kind.path}/torn")
    place = f"Key: {kind.key('torn').removeprefix('/registry')}, ResourceVersion: 0"
    text = f"StorageError: corrupt object, Code: 7, {place}, AdditionalErrorMsg: object not decodable revision="
    assert (reply.status, reply.body["reason"]) == (500, "InternalError")
    assert text in reply.message
    reply = setting.client.until(lambda reply: reply.status == 500, "GET", f"{kind.path}?limit=500")
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == [kind.key("torn")]
    assert setting.client.call("DELETE", f"{kind.path}/torn", OPTIONS).status == 200
    setting.client.until(lambda reply: reply.status == 200, "GET", kind.path, timeout=90)


@KINDS
def test_a_readable_object_is_not_deleted(setting: Setting, kind: Kind) -> None:
    setting.create(kind, "good")
    reply = setting.client.call("DELETE", f"{kind.path}/good", OPTIONS)
    place = f"Key: {kind.key('good')}, ResourceVersion: 0"
    text = "unsafe deletion is not allowed because the object is decodable from storage"
    error = f"StorageError: invalid object, Code: 4, {place}, AdditionalErrorMsg: {text}"
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.message == f'Operation cannot be fulfilled on {kind.resource} "good": {error}'
    assert setting.client.call("DELETE", f"{kind.path}/good").status == 200


@KINDS
def test_the_deletion_needs_its_own_permission_and_is_marked_in_the_audit_log(setting: Setting, kind: Kind) -> None:
    setting.create(kind, "secured")
    setting.damage(kind, "secured")
    croc = setting.client.with_headers({"Impersonate-User": "croc"})
    path = f"{kind.path}/secured"

    def grant(*verbs: str) -> None:
        name = f"{verbs[0]}-{kind.resource}"
        resource, _, group = kind.resource.partition(".")
        rules = [{"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}]
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "croc"}]
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        role = {"metadata": {"name": name}, "rules": rules}
        binding = {"metadata": {"name": name}, "roleRef": ref, "subjects": subjects}
        assert setting.client.call("POST", f"{RBAC}/clusterroles", role).status == 201
        assert setting.client.call("POST", f"{RBAC}/clusterrolebindings", binding).status == 201

    grant("delete", "get")
    croc.until(lambda reply: reply.status == 500, "GET", path)
    query = f"{path}?{OPTION}=true"
    reply = croc.call("DELETE", query)
    text = f'{kind.resource} "secured" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: '
    assert (reply.status, reply.body["reason"], reply.message) == (403, "Forbidden", text)
    assert croc.call("DELETE", path).status == 500
    grant("unsafe-delete-ignore-read-errors")
    croc.until(lambda reply: reply.status == 200, "DELETE", f"{query}&dryRun=All")
    assert croc.call("DELETE", query).status == 200
    marked = [AUDIT in annotations for annotations in setting.annotations(path, "croc")]
    assert (marked[0], marked[1], marked[-1]) == (True, False, True)


@KINDS
def test_unsafe_deletion_excludes_other_options(setting: Setting, kind: Kind) -> None:
    others: dict[str, Any] = {
        "propagationPolicy": "Orphan",
        "orphanDependents": True,
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
    }
    for name, value in others.items():
        reply = setting.client.call("DELETE", f"{kind.path}/nosuch", {**OPTIONS, name: value})
        text = f"{OPTION}: Invalid value: true: cannot be set together with .{name}"
        assert (reply.status, reply.message) == (422, f'DeleteOptions.meta.k8s.io "" is invalid: {text}')
    reply = setting.client.call("DELETE", f"{kind.path}?labelSelector=a%3Db", OPTIONS)
    assert reply.status == 422
    assert reply.message.endswith("is not allowed with DELETECOLLECTION, try again after removing the option")


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/default", f"{RBAC}/clusterroles/admin", f"{RBAC}/clusterroles/{quote('system:node')}"]
)
def test_some_kinds_do_not_support_it(setting: Setting, path: str) -> None:
    text = f"no unsafe deleter provided, can not honor {OPTION}"
    assert setting.client.call("DELETE", path, OPTIONS) == internal_error(text)


@KINDS
def test_without_the_gate_errors_name_no_object_and_the_option_is_ignored(disabled: Setting, kind: Kind) -> None:
    call = disabled.client.call
    for name in ("a-lost", "b-good", "c-lost"):
        disabled.create(kind, name)
    for name in ("a-lost", "c-lost"):
        disabled.damage(kind, name)
    path, error = f"{kind.path}/a-lost", internal_error(REASON)
    assert call("GET", path) == error
    assert call("DELETE", path) == error
    assert call("DELETE", path, {**OPTIONS, "gracePeriodSeconds": 0}) == error
    assert call("DELETE", f"{path}?{OPTION}=true") == error
    assert not any(AUDIT in (found or {}) for found in disabled.annotations(path, ""))
    text = f'unable to transform key "{kind.key("a-lost")}": {REASON}'
    reply = disabled.client.until(lambda reply: reply.status == 500, "GET", f"{kind.path}?limit=500")
    assert reply == internal_error(text)
    assert call("DELETE", f"{kind.path}/b-good", OPTIONS).status == 200
