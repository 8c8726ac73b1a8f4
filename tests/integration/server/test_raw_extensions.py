"""Fields of the type RawExtension keep the text that the client sent, as in kube-apiserver.

JSON has it without white space, and protobuf as it was sent. The answers are compared with those of kube-apiserver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.forms import FORMS, serving
from support.https_client import APPLY, MERGE, HttpsClient, causes, created

PROTOBUF: Final = {"accept": "application/vnd.kubernetes.protobuf"}
STRATEGIC: Final = "application/strategic-merge-patch+json"
GROUP: Final = "/apis/resource.k8s.io/v1"
BETA: Final = "/apis/resource.k8s.io/v1beta1"
NAMESPACED: Final = "/namespaces/default/resourceclaims"
CLAIMS: Final = f"{GROUP}{NAMESPACED}"
REVISIONS: Final = "/apis/apps/v1/namespaces/default/controllerrevisions"
PARAMETERS: Final = {"b": "<", "a": 1}
DATA: Final = {"kind": "k", "apiVersion": "example.com/v1"}
# the client of the tests writes JSON with white space
PARAMETERS_TEXT: Final = b'{"b": "<", "a": 1}'
DATA_TEXT: Final = b'{"kind": "k", "apiVersion": "example.com/v1"}'
DATA_COMPACT: Final = b'{"kind":"k","apiVersion":"example.com/v1"}'
DEVICE: Final = {"driver": "a.example.com", "pool": "p", "device": "d"}
CONFIG: Final = [{"opaque": {"driver": "a.example.com", "parameters": PARAMETERS}}]
REQUESTS: Final = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
ALLOCATION: Final = {"devices": {"results": [{"request": "r", **DEVICE}]}}


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    directory = tmp_path_factory.mktemp("raw")
    with serving(request.param, directory, "--runtime-config=resource.k8s.io/v1beta1=true") as client:
        client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default", timeout=30)
        yield client


def claim(client: HttpsClient, name: str, config: Any = None, finalizers: Any = None) -> Any:
    """Create a claim and set its status, with the texts of `CONFIG` and `DATA`. Return the claim as JSON."""
    spec = {"devices": {"requests": REQUESTS, "config": config}}
    made = created(client, CLAIMS, {"metadata": {"name": name, "finalizers": finalizers}, "spec": spec})
    status = {"allocation": ALLOCATION, "devices": [{**DEVICE, "data": DATA}]}
    reply = client.call("PUT", f"{CLAIMS}/{name}/status", {**made, "status": status})
    assert reply.status == 200, reply
    return reply.body


def data_in(body: bytes) -> bytes:
    """Return the JSON text of the field `data` of a ControllerRevision."""
    text = body.partition(b'"data":')[2]
    return text[: text.index(b"}") + 1]


def sent(client: HttpsClient, method: str, path: str, body: str, content_type: str = "application/json") -> bytes:
    """Send a body as it is, and return the text of `data` in the answer."""
    with client.send(method, path, body.encode(), content_type) as answer:
        return data_in(answer.read())


def in_protobuf(client: HttpsClient, path: str) -> bytes:
    with client.with_headers(PROTOBUF).lines(path) as answer:
        return answer.read()


def in_json(client: HttpsClient, path: str) -> bytes:
    with client.lines(path) as answer:
        return answer.read()


def test_json_has_the_keys_in_the_order_in_which_they_were_sent_and_no_white_space(client: HttpsClient) -> None:
    made = claim(client, "json", CONFIG)
    assert made["spec"]["devices"]["config"] == CONFIG
    assert made["status"]["devices"][0]["data"] == DATA
    for path in (f"{CLAIMS}/json", CLAIMS):
        body = in_json(client, path)
        assert b'"parameters":{"b":"\\u003c","a":1}' in body
        assert b'"data":' + DATA_COMPACT in body
        assert b"Text" not in body


def test_protobuf_has_the_text_that_was_sent(client: HttpsClient) -> None:
    claim(client, "protobuf", CONFIG)
    for path in (f"{CLAIMS}/protobuf", CLAIMS, f"{BETA}{NAMESPACED}/protobuf"):
        body = in_protobuf(client, path)
        assert PARAMETERS_TEXT in body
        assert DATA_TEXT in body


def test_watch_events_in_protobuf_have_the_text(client: HttpsClient) -> None:
    claim(client, "watched", CONFIG)
    selector = "fieldSelector=metadata.name%3Dwatched"
    body = in_protobuf(client, f"{CLAIMS}?watch=1&timeoutSeconds=1&{selector}")
    assert PARAMETERS_TEXT in body
    assert DATA_TEXT in body


def test_each_part_keeps_its_text_when_the_other_is_updated(client: HttpsClient) -> None:
    made = claim(client, "parts", CONFIG)
    labelled = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
    reply = client.call("PUT", f"{CLAIMS}/parts", labelled)
    assert reply.status == 200, reply
    assert DATA_TEXT in in_protobuf(client, f"{CLAIMS}/parts")
    reply = client.call("PUT", f"{CLAIMS}/parts/status", {**reply.body, "status": {"allocation": ALLOCATION}})
    assert reply.status == 200, reply
    body = in_protobuf(client, f"{CLAIMS}/parts")
    assert PARAMETERS_TEXT in body
    assert DATA_TEXT not in body


def test_an_update_with_the_same_text_changes_nothing(client: HttpsClient) -> None:
    made = claim(client, "same", CONFIG)
    for path in (f"{CLAIMS}/same", f"{CLAIMS}/same/status"):
        reply = client.call("PUT", path, made)
        assert (reply.status, reply.body) == (200, made)


def test_another_white_space_is_a_change_of_an_immutable_field(client: HttpsClient) -> None:
    made = claim(client, "immutable", CONFIG)
    (cause,) = causes(client.call("PUT", f"{CLAIMS}/immutable", made, "application/yaml"))
    assert cause.startswith("spec: Invalid value: ")
    assert cause.endswith(": field is immutable")
    (cause,) = causes(client.call("PATCH", f"{CLAIMS}/immutable", {"metadata": {"labels": {"a": "b"}}}, MERGE))
    assert cause.startswith("spec: Invalid value: ")


@pytest.mark.parametrize("content_type", [MERGE, APPLY])
def test_a_patch_encodes_the_text_anew(client: HttpsClient, content_type: str) -> None:
    name = "merged" if content_type == MERGE else "applied"
    claim(client, name)
    path = f"{CLAIMS}/{name}"
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"labels": {"a": "b"}}}
    query = "?fieldManager=m&force=true" if content_type == APPLY else ""
    assert client.call("PATCH", f"{path}{query}", body, content_type).status == 200
    assert DATA_TEXT in in_protobuf(client, path)  # the status is not part of this update
    status = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
    assert client.call("PATCH", f"{path}/status{query}", {**body, "status": status}, content_type).status == 200
    found = in_protobuf(client, path)
    assert DATA_TEXT not in found
    assert DATA_COMPACT in found or b'{"apiVersion":"example.com/v1","kind":"k"}' in found


def test_a_pending_deletion_keeps_the_text(client: HttpsClient) -> None:
    claim(client, "deleted", CONFIG, finalizers=["example.com/f"])
    reply = client.call("DELETE", f"{CLAIMS}/deleted")
    assert reply.status == 200, reply
    found = in_protobuf(client, f"{CLAIMS}/deleted")
    assert PARAMETERS_TEXT in found
    assert DATA_TEXT in found


def test_revisions_in_protobuf_have_the_text(client: HttpsClient) -> None:
    for name in ({"name": "r"}, {"generateName": "g-"}):
        made = created(client, REVISIONS, {"metadata": name, "data": PARAMETERS, "revision": 1})
        assert PARAMETERS_TEXT in in_protobuf(client, f"{REVISIONS}/{made['metadata']['name']}")
        assert "dataText" not in made


TEXTS: Final = {
    "escapes": ('{"a":"<&>\\u0041\\/"}', b'{"a":"\\u003c\\u0026\\u003e\\u0041\\/"}'),
    "numbers": (
        '{"a":1e5,"b":1.0,"c":-0,"d":12345678901234567890}',
        b'{"a":1e5,"b":1.0,"c":-0,"d":12345678901234567890}',
    ),
    "duplicates": ('{"a":1,"a":2}', b'{"a":1,"a":2}'),
    "spaces": ('{"b" : "<",  "a":[ 1 ]}', b'{"b":"\\u003c","a":[1]}'),
    "plain": ('{"b":1,"a":[1]}', b'{"b":1,"a":[1]}'),
}


@pytest.mark.parametrize("name", TEXTS)
def test_all_answers_have_the_text_that_was_sent(client: HttpsClient, name: str) -> None:
    text, shown = TEXTS[name]
    body = f'{{"metadata":{{"name":"{name}"}},"revision":1,"data":{text}}}'
    path = f"{REVISIONS}/{name}"
    for suffix in ("?dryRun=All", ""):
        assert sent(client, "POST", f"{REVISIONS}{suffix}", body) == shown
    assert data_in(in_json(client, path)) == shown
    assert text.encode() in in_protobuf(client, path)
    for suffix in ("?dryRun=All", ""):
        assert sent(client, "PUT", f"{path}{suffix}", body) == shown
    merge = '{"metadata":{"labels":{"a":"b"}}}'
    pointer = '[{"op":"add","path":"/metadata/labels","value":{"a":"c"}}]'
    for suffix in ("?dryRun=All", ""):
        for body, content_type in ((merge, MERGE), (pointer, "application/json-patch+json")):
            if text.encode() == shown:  # the patched object is encoded again
                assert sent(client, "PATCH", f"{path}{suffix}", body, content_type) == shown
            else:
                reply = client.call("PATCH", f"{path}{suffix}", json.loads(body), content_type)
                assert causes(reply)[0].endswith(": field is immutable")


@pytest.mark.parametrize("suffix", ["?dryRun=All", ""])
def test_texts_of_yaml_are_escaped_and_have_sorted_keys(client: HttpsClient, suffix: str) -> None:
    body = "metadata: {name: yaml}\nrevision: 1\ndata: {z: '<', a: 1e5, m: 1.0, k: 0x10, t: yes}\n"
    shown = b'{"a":100000,"k":16,"m":1,"t":true,"z":"\\u003c"}'
    assert sent(client, "POST", f"{REVISIONS}{suffix}", body, "application/yaml") == shown
    if not suffix:
        assert sent(client, "PUT", f"{REVISIONS}/yaml", body, "application/yaml") == shown
        assert shown in in_protobuf(client, f"{REVISIONS}/yaml")


@pytest.mark.parametrize("suffix", ["&dryRun=All", ""])
def test_applied_texts_are_escaped_and_have_sorted_keys(client: HttpsClient, suffix: str) -> None:
    kind = '"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"applied-text"}'
    body = f'{{{kind},"revision":1,"data":{{"z":"<","m":1.0,"a":1e5}}}}'
    path = f"{REVISIONS}/applied-text?fieldManager=m{suffix}"
    assert sent(client, "PATCH", path, body, APPLY) == b'{"a":100000,"m":1,"z":"\\u003c"}'


AGAIN: Final = {"1.0": "1", "1e20": "100000000000000000000", "1e+20": "100000000000000000000"}


@pytest.mark.parametrize(
    ("content_type", "number"),
    [
        *[("application/json", number) for number in ("1.0", "1e20", "1e+20", "100000000000000000000", "0.000001")],
        *[(patch, number) for patch in (MERGE, "application/json-patch+json") for number in ("1.0", "1e+20")],
        *[(media_type, number) for media_type in ("application/yaml", STRATEGIC) for number in (*AGAIN, "0.000001")],
    ],
)
def test_only_yaml_and_strategic_merge_patches_encode_numbers_again(
    client: HttpsClient, content_type: str, number: str
) -> None:
    config = f'[{{"opaque": {{"driver": "a.example.com", "parameters": {{"a": {number}}}}}}}]'
    spec = f'"spec": {{"config": {config}}}'
    classes = f"{GROUP}/deviceclasses"
    made = created(client, classes, {"metadata": {"generateName": "numbers-"}})
    path = f"{classes}/{made['metadata']['name']}"
    kind = f'"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {json.dumps(made["metadata"])}'
    method, body = {
        MERGE: ("PATCH", f"{{{spec}}}"),
        STRATEGIC: ("PATCH", f"{{{spec}}}"),
        "application/json-patch+json": ("PATCH", f'[{{"op": "add", "path": "/spec/config", "value": {config}}}]'),
    }.get(content_type, ("PUT", f"{{{kind}, {spec}}}"))
    with client.send(method, path, body.encode(), content_type) as answer:
        assert answer.status == 200, answer.read()
    text = in_json(client, path).partition(b'"parameters":{"a":')[2].partition(b"}")[0].decode()
    assert text == (AGAIN.get(number, number) if content_type in ("application/yaml", STRATEGIC) else number)


def test_merge_patches_sort_equal_values_that_they_name(client: HttpsClient) -> None:
    sent_text, sorted_text = '{"b":1,"a":[{"z":1,"y":2}]}', b'{"a":[{"y":2,"z":1}],"b":1}'
    spec = f'"spec": {{"config": [{{"opaque": {{"driver": "a.example.com", "parameters": {sent_text}}}}}]}}'
    path = f"{GROUP}/deviceclasses/sorted"
    with client.send(
        "POST", f"{GROUP}/deviceclasses", f'{{"metadata": {{"name": "sorted"}}, {spec}}}'.encode()
    ) as made:
        assert sent_text.encode() in made.read()
    with client.send("PATCH", path, f'{{"metadata": {{"labels": {{"a": "b"}}}}, {spec}}}'.encode(), MERGE) as answer:
        assert sorted_text in answer.read()
    assert sorted_text in in_json(client, path)


def test_merge_patches_sort_the_parts_of_a_revision_that_they_name(client: HttpsClient) -> None:
    for name, text in (("sorted", '{"b":1,"c":{"e":1,"d":2}}'), ("unsorted", '{"c":{"e":1,"d":2},"b":1}')):
        body = f'{{"metadata":{{"name":"{name}"}},"revision":1,"data":{text}}}'
        client.send("POST", REVISIONS, body.encode()).close()
    reply = client.call("PATCH", f"{REVISIONS}/sorted", {"revision": 2, "data": {"b": 1}}, MERGE)
    assert reply.status == 200, reply
    for name, data in (("unsorted", {"b": 1}), ("sorted", {"c": {}})):
        (cause,) = causes(client.call("PATCH", f"{REVISIONS}/{name}", {"revision": 3, "data": data}, MERGE))
        assert cause.endswith(": field is immutable")
