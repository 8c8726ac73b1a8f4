"""Admission webhooks for connections (exec, attach, portforward, proxy), whose object is the options of the query."""

from __future__ import annotations

from typing import Any

import pytest

from integration.webhooks.conftest import NS, Hooked
from support.waiting import until
from support.webhook import allowed, answered, json_patch

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False},
}
PODS = f"/api/v1/namespaces/{NS}/pods"
CONNECTIONS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/*"]}


@pytest.fixture
def pod(hooked: Hooked) -> None:
    until(lambda: hooked.client.call("POST", PODS, POD).status in (201, 409), description="the pod")


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    ("request_path", "kind", "fields"),
    [
        (
            "exec?command=ls&command=-l&stdin=x&tty=False&ignored=1",
            "PodExecOptions",
            {"command": ["ls", "-l"], "stdin": True},
        ),
        ("exec", "PodExecOptions", {"command": None}),
        ("attach?container=c&command=ls", "PodAttachOptions", {"container": "c"}),
        ("portforward?ports=1,2&ports=3", "PodPortForwardOptions", {"ports": [1, 2, 3]}),
        ("proxy?path=/x", "PodProxyOptions", {}),
        ("proxy/", "PodProxyOptions", {"path": "/"}),
        ("proxy/a/b/?stdin=1", "PodProxyOptions", {"path": "/a/b/"}),
    ],
)
def test_a_review_of_a_connection_contains_its_options(
    hooked: Hooked, request_path: str, kind: str, fields: Any
) -> None:
    hooked.hook.on("/v", lambda review: answered(review, allowed=False))
    with hooked.configured("Validating", hooked.declared("v", "/v", rules=[CONNECTIONS])):
        assert hooked.client.call("GET", f"{PODS}/p/{request_path}").status == 400
    assert [review["object"] for review in hooked.reviews()] == [{"kind": kind, "apiVersion": "v1", **fields}]


@pytest.mark.usefixtures("pod")
def test_a_connection_uses_the_options_that_a_webhook_has_patched(hooked: Hooked) -> None:
    patch = json_patch({"op": "add", "path": "/container", "value": "other"}, {"op": "add", "path": "/x", "value": 1})
    hooked.hook.on("/m", lambda review: allowed(review, **patch))
    with hooked.configured("Mutating", hooked.declared("m", "/m", rules=[CONNECTIONS])):
        reply = hooked.client.call("POST", f"{PODS}/p/exec?command=ls&container=c")
    assert (reply.status, reply.message) == (400, "container other is not valid for pod p")


@pytest.mark.usefixtures("pod")
def test_a_connection_with_an_invalid_port_is_rejected_before_admission(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/v", rules=[CONNECTIONS])):
        reply = hooked.client.call("POST", f"{PODS}/p/portforward?ports=70000")
    text = 'cannot convert to []int32: strconv.ParseUint: parsing "70000": value out of range'
    assert (reply.status, reply.message, hooked.reviews()) == (400, text, [])
