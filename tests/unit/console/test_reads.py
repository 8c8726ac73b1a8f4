"""Which paths the console reads."""

from __future__ import annotations

import pytest

from tetrapod.console.reads import Answer, checked_path, error_message


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default",
        "/api/v1/pods?limit=5&resourceVersion=0",
        "/api/v1/namespaces/default/pods/a/log",
        "/apis/apps/v1/namespaces/default/deployments/a/scale",
        "/apis/apps/v1/namespaces/default/deployments/a/status?watch=0",
        "/apis",
        "/apis/apps/v1",
        "/openapi/v3/apis/apps/v1",
        "/.well-known/openid-configuration",
        "/readyz/etcd?verbose",
        "/version",
        "/metrics/slis",
        "/",
        "/api/v1/configmaps?labelSelector=a%3Db%20c",
    ],
)
def test_reads_of_objects_lists_and_documents_are_permitted(path: str) -> None:
    assert checked_path(path) == path


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/api/v1/pods?watch=1", "this request is a watch"),
        ("/api/v1/watch/pods", "this request is a watch"),
        ("/api/v1/watch", "unable to determine kind"),
        ("/api/v1/proxy/nodes/a", "this request is a proxy"),
        ("/api/v1/namespaces/default/services/a/proxy/delete-everything", "the subresource proxy reaches"),
        ("/api/v1/namespaces/default/pods/a/%70roxy/x", "the subresource proxy reaches"),
        ("/api/v1/namespaces/default/pods/a/exec?command=rm", "the subresource exec reaches"),
        ("/api/v1/namespaces/default/pods/a/attach", "the subresource attach reaches"),
        ("/api/v1/namespaces/default/pods/a/portforward", "the subresource portforward reaches"),
        ("/debug/pprof/profile", "none of the paths"),
        ("/logs/kube-apiserver.log", "none of the paths"),
        ("/readyz/../debug/pprof/profile", "segments . and .."),
        ("/readyz/%2e%2e/debug", "segments . and .."),
        ("//evil.example.com/api", "must begin with one /"),
        ("https://evil.example.com/api", "must begin with one /"),
        ("", "must begin with one /"),
        ("/api/v1/pods?a=b c", "neither spaces"),
        ("/api/v1/pods#x", "neither spaces"),
        ("/api\r\nx: y", "neither spaces"),
        ("/api/v1/pods?a=é", "neither spaces"),
    ],
)
def test_other_requests_are_rejected(path: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace(".", r"\.")):
        checked_path(path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"kind":"Status","message":"pods is forbidden"}', "pods is forbidden"),
        (b"not found\n", "not found"),
        (b"", "status 503"),
        (b'["a"]', '["a"]'),
        (b"\xff", "�"),
    ],
)
def test_the_message_of_an_error_response_is_that_of_its_status(body: bytes, message: str) -> None:
    assert error_message(Answer(503, body)) == message
