"""Authorization configuration of `tetrapod up`: policies, a webhook, reloading, and configurations rejected at
start.
"""

from __future__ import annotations

import fnmatch
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.failing_starts import failed_start
from support.kubeconfig import write_kubeconfig
from support.server import running
from support.waiting import until
from support.webhook import Answer, WebhookServer, webhook_server
from tetrapod.generic.configuration.watching import INTERVAL

TOKENS = "admin-token,admin,1,system:masters\nalice-token,alice,2\nbob-token,bob,3\n"


@pytest.fixture
def hook() -> Iterator[WebhookServer]:
    with webhook_server() as made:
        yield made


def ask(url: str, path: str, token: str) -> tuple[int, str]:
    request = urllib.request.Request(url + path, headers={"authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def message(answer: tuple[int, str]) -> str:
    return str(json.loads(answer[1])["message"])


def configure(path: Path, *authorizers: dict[str, Any]) -> None:
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
    path.write_text(yaml.safe_dump({**head, "authorizers": list(authorizers)}))


RBAC = {"type": "RBAC", "name": "rbac"}


def webhook(kubeconfig: Path, **more: Any) -> dict[str, Any]:
    about = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": "NoOpinion",
        "cacheAuthorizedRequests": False,
        "cacheUnauthorizedRequests": False,
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig)},
        "matchConditionSubjectAccessReviewVersion": "v1",
        "matchConditions": [{"expression": "!request.user.startsWith('system:')"}],
    }
    return {"type": "Webhook", "name": "hook", "webhook": {**about, **more}}


def test_authorizers_follow_changes_of_the_file(tmp_path: Path, hook: WebhookServer) -> None:
    file, tokens, kubeconfig = tmp_path / "authz.yaml", tmp_path / "tokens.csv", tmp_path / "kubeconfig"
    tokens.write_text(TOKENS)
    write_kubeconfig(kubeconfig, hook, "/authorize")

    def review(asked: Any) -> Any:
        if asked["spec"]["user"] == "bob":
            return Answer(403, b"broken", {"content-type": "text/plain"})
        path = asked["spec"].get("nonResourceAttributes", {}).get("path")
        status = {"allowed": path != "/version", "denied": path == "/version", "reason": "as the webhook says"}
        return {"apiVersion": asked["apiVersion"], "kind": "SubjectAccessReview", "status": status}

    hook.on("/authorize", review)
    configure(file, webhook(kubeconfig), RBAC)
    with running(tmp_path / "data", "--token-auth-file", str(tokens), "--authorization-config", str(file)) as server:
        url = server.url
        assert ask(url, "/api/v1/pods", "alice-token")[0] == 200
        rejected = ask(url, "/version", "alice-token")
        assert (rejected[0], message(rejected)) == (
            403,
            'forbidden: User "alice" cannot get path "/version": as the webhook says',
        )
        assert ask(url, "/version", "bob-token")[0] == 200  # RBAC allows it, independent of the webhook
        assert ask(url, "/metrics?a=<b", "bob-token") == (500, 'Internal Server Error: "/metrics?a=&lt;b": broken\n')
        assert ask(url, "/metrics", "admin-token")[0] == 200

        configure(file, webhook(kubeconfig, failurePolicy="Perhaps"), RBAC)  # rejected
        until(lambda: "Unsupported value" in server.log.read_text())
        assert ask(url, "/api/v1/pods", "alice-token")[0] == 200

        configure(file, RBAC)
        until(lambda: ask(url, "/api/v1/pods", "alice-token")[0], lambda status: status == 403)
        assert ask(url, "/version", "alice-token")[0] == 200
        metrics = ask(url, "/metrics", "admin-token")[1].splitlines()
        for line in (
            'apiserver_authorization_decisions_total{decision="denied",name="hook",type="Webhook"} 1',
            (
                'apiserver_authorization_config_controller_automatic_reloads_total{apiserver_id_hash="*",'
                'status="success"} 1'
            ),
            (
                'apiserver_authorization_config_controller_automatic_reloads_total{apiserver_id_hash="*",'
                'status="failure"} 1'
            ),
            'authorization_attempts_total{result="denied"} 1',
            'authorization_attempts_total{result="error"} 1',
            "# TYPE authentication_attempts counter",
            "# TYPE apiserver_request_total counter",
            'authentication_attempts{result="success"} *',
        ):
            assert fnmatch.filter(metrics, line), line


def test_a_file_with_the_same_authorizers_is_not_a_reload(tmp_path: Path) -> None:
    file, tokens = tmp_path / "authz.yaml", tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    configure(file, RBAC)
    with running(tmp_path / "data", "--token-auth-file", str(tokens), "--authorization-config", str(file)) as server:

        def write(version: str, *authorizers: dict[str, Any]) -> None:
            changed = file.with_suffix(".new")
            configure(changed, *authorizers)
            changed.write_text(changed.read_text().replace("config.k8s.io/v1", f"config.k8s.io/{version}"))
            changed.replace(file)
            time.sleep(3 * INTERVAL)  # until the server has read the file, which nothing else shows

        def reloads() -> list[str]:
            lines = ask(server.url, "/metrics", "admin-token")[1].splitlines()
            return [line for line in lines if line.startswith("apiserver_authorization_config_controller_automatic_r")]

        write("v1beta1", RBAC)
        write("v1alpha1", RBAC)
        assert reloads() == []
        write("v1", RBAC, {"type": "AlwaysAllow", "name": "alwaysallow"})
        assert [line.rpartition("} ")[2] for line in reloads() if "_total" in line] == ["1"]
        assert ask(server.url, "/api/v1/pods", "alice-token")[0] == 200
        write("v1beta1", RBAC, {"type": "AlwaysAllow", "name": "alwaysallow"})
        assert [line.rpartition("} ")[2] for line in reloads() if "_total" in line] == ["1"]


def test_abac_policies_are_read_from_a_file(tmp_path: Path) -> None:
    tokens, policies = tmp_path / "tokens.csv", tmp_path / "policies.jsonl"
    tokens.write_text(TOKENS)
    policies.write_text('{"user":"alice","resource":"pods","readonly":true}\n')
    flags = [
        "--token-auth-file",
        str(tokens),
        "--authorization-mode",
        "ABAC,RBAC",
        "--authorization-policy-file",
        str(policies),
    ]
    with running(tmp_path / "data", *flags) as server:
        assert ask(server.url, "/api/v1/pods", "alice-token")[0] == 200
        rejected = ask(server.url, "/api/v1/secrets", "alice-token")
        assert message(rejected).endswith(
            'cannot list resource "secrets" in API group "" at the cluster scope: abac: No policy matched.'
        )


def test_a_webhook_can_be_configured_by_flags(tmp_path: Path, hook: WebhookServer) -> None:
    tokens, kubeconfig = tmp_path / "tokens.csv", tmp_path / "kubeconfig"
    tokens.write_text(TOKENS)
    write_kubeconfig(kubeconfig, hook, "/authorize")
    hook.on(
        "/authorize",
        lambda asked: {"apiVersion": asked["apiVersion"], "kind": "SubjectAccessReview", "status": {"allowed": True}},
    )
    flags = [
        "--token-auth-file",
        str(tokens),
        "--authorization-mode",
        "Webhook",
        "--authorization-webhook-config-file",
        str(kubeconfig),
    ]
    with running(tmp_path / "data", *flags) as server:
        assert ask(server.url, "/api/v1/pods", "alice-token")[0] == 200
    asked = next(body for _, _, body in hook.seen if body["spec"]["user"] == "alice")
    assert asked["apiVersion"] == "authorization.k8s.io/v1beta1"


BOTH = (
    "--authorization-config can not be specified when --authorization-mode or "
    "--authorization-webhook-* flags are defined"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--authorization-mode=ABAC"], "authorization-mode ABAC's authorization policy file not passed"),
        (
            ["--authorization-mode=ABAC", "--authorization-policy-file=/nope"],
            "invalid authorization config: open /nope: no such file or directory",
        ),
        (
            ["--authorization-mode=ABAC,ABAC,Foo,Webhook", "--authorization-policy-file=/nope"],
            '[authorization-mode "Foo" is not a valid mode, authorization-mode Webhook\'s authorization config file '
            'not passed, authorization-mode ["ABAC" "ABAC" "Foo" "Webhook"] has mode specified more than once]',
        ),
        (["--authorization-mode=RBAC", "--authorization-config=/nope"], BOTH),
        (["--authorization-config=/nope"], "open /nope: no such file or directory"),
        (["--authorization-policy-file=/nope"], "cannot specify --authorization-policy-file without mode ABAC"),
        (
            ["--authorization-mode=Webhook", "--authorization-webhook-config-file=/nope"],
            "invalid authorization config: stat /nope: no such file or directory",
        ),
        (
            [
                "--authorization-mode=Webhook",
                "--authorization-webhook-config-file=KUBECONFIG",
                "--authorization-webhook-version=v3",
            ],
            (
                'invalid authorization config: unsupported webhook authorizer version "v3", '
                'supported versions are "v1", "v1beta1"'
            ),
        ),
        (
            ["--authentication-token-webhook-config-file=KUBECONFIG", "--authentication-token-webhook-version=v3"],
            'unsupported authentication webhook version "v3", supported versions are "v1", "v1beta1"',
        ),
    ],
)
def test_an_invalid_configuration_is_reported_at_start_in_one_line(
    tmp_path: Path, hook: WebhookServer, flags: list[str], text: str
) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", hook, "/x")
    failed = failed_start(tmp_path / "data", *(flag.replace("KUBECONFIG", str(kubeconfig)) for flag in flags))
    assert (failed.code, failed.error) == (1, f"Error: {text}")
