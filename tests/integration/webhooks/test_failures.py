"""Webhooks that reject requests, and webhooks that respond incorrectly, late or never.

The messages are those of kube-apiserver.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from integration.webhooks.conftest import CONFIG_MAPS, Hooked, config_map
from support.https_client import HttpsClient
from support.webhook import HOLD, Answer, allowed, answered, json_patch, webhook_server
from tetrapod.generic.certificates.authority import Authority

STRUCT = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
TEXT = {"content-type": "text/plain"}
CALL = "failed to call webhook: "
INVALID = "received invalid webhook response: "
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'

BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "text": (
        lambda r: Answer(200, b"hello\n", TEXT),
        (
            f"{CALL}couldn't get version/kind; json parse error: json: cannot unmarshal string into "
            f"Go value of type {STRUCT}"
        ),
    ),
    "a list": (
        lambda r: Answer(200, b"[]"),
        (
            f"{CALL}couldn't get version/kind; json parse error: json: cannot unmarshal array into Go "
            f"value of type {STRUCT}"
        ),
    ),
    "nothing": (
        lambda r: Answer(200, b""),
        f"{CALL}0-length response with status code: 200 and content type: application/json",
    ),
    "two objects": (
        lambda r: Answer(200, b"{}{}"),
        f"{CALL}couldn't get version/kind; json parse error: invalid character '{{' after top-level value",
    ),
    "an empty object": (lambda r: {}, f"{INVALID}webhook response was absent"),
    "another kind": (
        lambda r: {"kind": "Pod", "apiVersion": "v1"},
        f'{CALL}no kind "Pod" is registered for version "v1" {SCHEME}',
    ),
    "a Status": (
        lambda r: {"kind": "Status", "apiVersion": "v1", "status": "Failure"},
        f"{CALL}converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
    ),
    "another version": (
        lambda r: {**allowed(r), "apiVersion": "admission.k8s.io/v1beta1"},
        f"{CALL}converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
    "no kind": (
        lambda r: {"response": allowed(r)["response"]},
        f"{INVALID}expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
    ),
    "a wrong type": (
        lambda r: answered(r, allowed="yes"),
        f"{CALL}json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
    ),
    "no base64": (
        lambda r: allowed(r, patch="***", patchType="JSONPatch"),
        f"{CALL}illegal base64 data at input byte 0",
    ),
    "a patch": (
        lambda r: allowed(r, **json_patch({"op": "add"})),
        f"{INVALID}validating webhook may not return response.patch",
    ),
    "no media type": (
        lambda r: Answer(200, b"{}", {"content-type": ";;"}),
        f"{CALL}Internal error occurred: mime: no media type",
    ),
    "304": (
        lambda r: Answer(304),
        f"{CALL}the server responded with the status code 304 but did not return more information",
    ),
    "403": (lambda r: Answer(403, b"no entry\n", TEXT), f"{CALL}no entry"),
    "404": (lambda r: Answer(404, b"x", TEXT), f"{CALL}the server could not find the requested resource"),
    "500": (
        lambda r: Answer(500, b'boom "q"', TEXT),
        f'{CALL}an error on the server ("boom \\"q\\"") has prevented the request from succeeding',
    ),
    "a Status with 500": (
        lambda r: Answer(
            500, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"expected","code":500}'
        ),
        f"{CALL}expected",
    ),
    "cut off": (
        lambda r: Answer(200, b'{"kind"', length=100),
        f"{CALL}unexpected error when reading response body. Please retry. Original error: unexpected EOF",
    ),
}
POST = f'{CALL}Post "URL/x?timeout=2s": '
BROKEN = f"{POST}net/http: HTTP/1.x transport connection broken: "
BAD |= {
    "a closed connection": (lambda r: b"", f"{POST}EOF"),
    "another protocol": (lambda r: b"SSH-2.0-x\r\n\r\n", f'{BROKEN}malformed HTTP response "SSH-2.0-x"'),
    "a header without a colon": (
        lambda r: b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        f'{BROKEN}malformed MIME header: missing colon: "no header"',
    ),
    "a redirect to another protocol": (
        lambda r: Answer(307, b"", {"location": "ftp://127.0.0.1/x"}),
        f'{CALL}Post "ftp://127.0.0.1/x": unsupported protocol scheme "ftp"',
    ),
    "a redirect in a circle": (
        lambda r: Answer(307, b"", {"location": "/x"}),
        f'{CALL}Post "/x": stopped after 10 redirects',
    ),
    "never": (lambda r: HOLD, f"{POST}context deadline exceeded"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_answers_are_reported_with_upstreams_message(hooked: Hooked, case: str) -> None:
    respond, text = BAD[case]
    hooked.hook.on("/x", respond)
    with hooked.configured("Validating", hooked.declared("v", "/x")):
        rejected = hooked.create()
    expected = f'failed calling webhook "v.example.com": {text.replace("URL", hooked.hook.url)}'
    assert (rejected.status, rejected.message) == (500, f"Internal error occurred: {expected}")
    assert rejected.body["details"] == {"causes": [{"message": expected}]}


@pytest.mark.parametrize("case", BAD)
def test_failures_of_a_webhook_with_policy_ignore_reject_no_request(hooked: Hooked, case: str) -> None:
    hooked.hook.on("/x", BAD[case][0])
    with hooked.configured("Validating", hooked.declared("v", "/x", failurePolicy="Ignore", timeoutSeconds=1)):
        assert hooked.create().status == 201


def test_a_wrong_uid_is_no_answer(hooked: Hooked) -> None:
    hooked.hook.on("/x", lambda r: {**allowed(r), "response": {"uid": "other", "allowed": True}})
    with hooked.configured("Validating", hooked.declared("v", "/x")):
        message = hooked.create().message
    (request,) = hooked.reviews()
    assert message.endswith(f'{INVALID}expected response.uid="{request["uid"]}", got "other"')


def test_a_huge_answer_is_not_taken_in(hooked: Hooked) -> None:
    hooked.hook.on("/x", lambda r: Answer(200, b" " * (20 << 20)))
    with hooked.configured("Validating", hooked.declared("v", "/x", timeoutSeconds=10)):
        assert "the answer is larger than" in hooked.create().message


def test_redirects_are_followed_with_the_review(hooked: Hooked) -> None:
    hooked.hook.on("/x", lambda r: Answer(307, b"", {"location": "/y"}))
    hooked.hook.on("/y", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/x")):
        assert hooked.create().status == 201
    assert [target for target, _, _ in hooked.hook.seen] == ["POST /x?timeout=2s", "POST /y"]


def test_an_answer_that_says_when_to_ask_again_is_asked_again(hooked: Hooked) -> None:
    answers = iter([Answer(503, b"", {"retry-after": "0"})] * 2)
    hooked.hook.on("/x", lambda r: next(answers, None) or allowed(r))
    with hooked.configured("Validating", hooked.declared("v", "/x")):
        assert hooked.create().status == 201
    assert len(hooked.reviews()) == 3


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (None, 400, "without explanation"),
        ({"message": "because"}, 400, ": because"),
        ({"reason": "Nope"}, 400, ": Nope"),
        ({"code": 418, "message": "tea"}, 418, ": tea"),
        ({"code": 200, "status": "Success", "message": "x"}, 400, ": x"),
    ],
)
def test_a_rejection_is_the_hooks_own_status(hooked: Hooked, status: Any, code: int, message: str) -> None:
    hooked.hook.on("/x", lambda r: answered(r, allowed=False, **({} if status is None else {"status": status})))
    with hooked.configured("Validating", hooked.declared("v", "/x")):
        rejected = hooked.create()
    gap = "" if message.startswith(":") else " "
    assert (rejected.status, rejected.message) == (
        code,
        f'admission webhook "v.example.com" denied the request{gap}{message}',
    )
    assert (rejected.body["status"], rejected.body.get("reason")) == ("Failure", (status or {}).get("reason"))


PATCHES: dict[str, tuple[dict[str, str], str]] = {
    "no type": ({"patch": "W10="}, f"{INVALID}webhook returned response.patch but not response.patchType"),
    "no patch": ({"patchType": "JSONPatch"}, f"{INVALID}webhook returned response.patchType but not response.patch"),
    "another type": (
        {**json_patch({"op": "add", "path": "/data/x", "value": "y"}), "patchType": "Merge"},
        'unsupported patch type "Merge"',
    ),
    "an object": (
        {"patch": "e30=", "patchType": "JSONPatch"},
        (
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go "
            "value of type jsonpatch.Patch"
        ),
    ),
}


@pytest.mark.parametrize("case", PATCHES)
def test_patches_that_are_invalid_are_failures_of_the_call(hooked: Hooked, case: str) -> None:
    patch, text = PATCHES[case]
    hooked.hook.on("/x", lambda r: allowed(r, **patch))
    with hooked.configured("Mutating", hooked.declared("m", "/x")):
        assert hooked.create().message == f'Internal error occurred: failed calling webhook "m.example.com": {text}'


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"op": "test", "path": "/data/k", "value": "no"}, "testing value /data/k failed: test failed"),
        ({"op": "frob", "path": "/x"}, "Unexpected kind: frob"),
        (
            {"op": "add", "path": "/foo/bar", "value": 1},
            'add operation does not apply: doc is missing path: "/foo/bar": missing value',
        ),
        (
            {"op": "add", "path": "/data", "value": "x"},
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            {"op": "replace", "path": "/apiVersion", "value": "v2"},
            f'no kind "ConfigMap" is registered for version "v2" {SCHEME}',
        ),
    ],
)
def test_patches_that_do_not_apply_are_internal_errors(hooked: Hooked, operation: Any, text: str) -> None:
    hooked.hook.on("/x", lambda r: allowed(r, **json_patch(operation)))
    with hooked.configured("Mutating", hooked.declared("m", "/x", failurePolicy="Ignore")):
        rejected = hooked.create()
    assert (rejected.status, rejected.message) == (500, f"Internal error occurred: {text}")


def test_nothing_can_be_changed_in_a_deletion(hooked: Hooked) -> None:
    hooked.create("kept", "")
    hooked.hook.on("/x", lambda r: allowed(r, **json_patch({"op": "add", "path": "/data/x", "value": "y"})))
    with hooked.configured("Mutating", hooked.declared("m", "/x")):
        rejected = hooked.client.call("DELETE", f"{CONFIG_MAPS}/kept")
    text = 'admission webhook "m.example.com" attempted to modify the object, which is not supported for this operation'
    assert (rejected.status, rejected.message) == (500, f"Internal error occurred: {text}")
    assert hooked.client.call("DELETE", f"{CONFIG_MAPS}/kept").status == 200


UNTRUSTED = "tls: failed to verify certificate: x509: "


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (("10.1.2.3", "10.1.2.4"), "certificate is valid for 10.1.2.3, 10.1.2.4, not 127.0.0.1"),
        (("example.com",), "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"),
        (("127.0.0.1",), "certificate signed by unknown authority"),
    ],
)
def test_certificates_that_are_not_trusted(hooked: Hooked, hosts: tuple[str, ...], text: str) -> None:
    with webhook_server(hosts) as other:
        other.on("/x", allowed)
        config = other.config("/x")
        if "authority" in text:
            config["caBundle"] = hooked.hook.ca_bundle
        with hooked.configured("Validating", hooked.declared("v", "/x", clientConfig=config)):
            message = hooked.create().message
    assert message.endswith(f'Post "{other.url}/x?timeout=2s": {UNTRUSTED}{text}')
    assert other.seen == []


def test_a_bundle_that_is_invalid_is_reported_at_the_call(hooked: Hooked) -> None:
    config = {**hooked.hook.config("/x"), "caBundle": "Z2FyYmFnZQ=="}
    with hooked.configured("Validating", hooked.declared("v", "/x", clientConfig=config)):
        message = hooked.create().message
    assert message.endswith(
        "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
    )


def test_a_service_is_resolved_and_must_answer_by_its_name(hooked: Hooked, client: HttpsClient) -> None:
    authority = Authority.create("service-ca")
    with webhook_server(("hook.hooked.svc",), authority=authority) as server:
        server.on("/x", allowed)
        config = {"service": {"name": "hook", "namespace": "hooked", "path": "/x"}, "caBundle": server.ca_bundle}
        with hooked.configured("Validating", hooked.declared("v", "/x", clientConfig=config)):
            url = "https://hook.hooked.svc:443/x?timeout=2s"
            assert hooked.create().message.endswith(f'Post "{url}": service "hook" not found')
            service = {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "hook"},
                "spec": {"ports": [{"port": 443}]},
            }
            assert client.call("POST", "/api/v1/namespaces/hooked/services", service).status == 201
            rejected = client.until(
                lambda r: "not found" not in r.message, "POST", CONFIG_MAPS + "?dryRun=All", config_map()
            )
            assert rejected.message.endswith(f'Post "{url}": no endpoints available for service "hook"')


def test_a_hanging_webhook_does_not_delay_other_requests(hooked: Hooked) -> None:
    hooked.hook.on("/x", lambda r: HOLD)
    with hooked.configured("Validating", hooked.declared("v", "/x", timeoutSeconds=3)):
        waiting = [threading.Thread(target=hooked.create, args=(f"w{i}",)) for i in range(8)]
        for thread in waiting:
            thread.start()
        start = time.monotonic()
        for _ in range(20):
            assert hooked.client.call("GET", CONFIG_MAPS).status == 200
        assert time.monotonic() - start < 2
        for thread in waiting:
            thread.join()


def test_connections_are_used_again(hooked: Hooked) -> None:
    hooked.hook.on("/x", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/x")):
        for _ in range(5):
            assert hooked.create().status == 201
    assert hooked.hook.connections == 1


def test_metrics_count_calls_rejections_and_ignored_failures(hooked: Hooked) -> None:
    hooked.hook.on("/deny", lambda r: answered(r, allowed=False))
    hooked.hook.on("/break", lambda r: Answer(500, b"x", TEXT))
    with hooked.configured("Validating", hooked.declared("denying", "/deny")):
        hooked.create()
    with hooked.configured("Validating", hooked.declared("broken", "/break", failurePolicy="Ignore")):
        hooked.create()
    lines = str(hooked.client.call("GET", "/metrics").body).splitlines()
    for wanted in (
        'apiserver_admission_webhook_rejection_count{error_type="no_error",name="denying.example.com",'
        'operation="CREATE",rejection_code="400",type="validating"} 1',
        'apiserver_admission_webhook_request_total{code="400",name="denying.example.com",operation="CREATE",'
        'rejected="true",type="validating"} 1',
        'apiserver_admission_webhook_fail_open_count{name="broken.example.com",type="validating"} 1',
    ):
        assert any(_labels(line) == _labels(wanted) for line in lines), wanted
    assert any(line.startswith("apiserver_admission_webhook_admission_duration_seconds_bucket") for line in lines)


def _labels(line: str) -> tuple[str, frozenset[str], str]:
    name, _, rest = line.partition("{")
    labels, _, value = rest.rpartition("} ")
    return name.removesuffix("_total"), frozenset(labels.split(",")), value


def test_a_redirect_into_the_inside_shows_nothing_of_what_is_there(hooked: Hooked) -> None:
    """As upstream, redirects are followed to any address.

    A response that is not a review is not shown to the client.
    """
    with webhook_server(tls=False) as inside:
        inside.on("/latest", lambda r: Answer(200, b'{"password": "hunter2"}'))
        hooked.hook.on("/x", lambda r: Answer(302, b"", {"location": f"http://127.0.0.1:{inside.port}/latest"}))
        with hooked.configured("Validating", hooked.declared("v", "/x")):
            rejected = hooked.create()
        asked = list(inside.seen)
    assert rejected.status == 500
    assert "hunter2" not in str(rejected.body)
    assert [(line, body) for line, _, body in asked] == [("GET /latest", None)]
    assert not [headers for _, headers, _ in asked if "authorization" in headers]
