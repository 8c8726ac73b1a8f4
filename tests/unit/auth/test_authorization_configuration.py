"""Tests of AuthorizationConfiguration files: all errors in a file are reported together, in upstream's wording."""

from __future__ import annotations

from pathlib import Path

import pytest

from tetrapod.auth.authorizers.chain import checked
from tetrapod.auth.authorizers.configuration import load_configuration

HEAD = b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "authorizers: Required value: at least one authorization mode must be defined"),
        (HEAD, "authorizers: Required value: at least one authorization mode must be defined"),
        (
            HEAD + b"authorizers: [{type: RBAC, name: b}, {type: Node, name: 'm'}]\n",
            (
                "[expected name rbac for authorizer RBAC instead of b, expected name node for "
                "authorizer Node instead of m]"
            ),
        ),
        (
            HEAD + b"authorizers: [{type: RBAC, name: n}]\n",
            "failed to load AuthorizationConfiguration from file: json: cannot unmarshal bool into Go struct field "
            "AuthorizerConfiguration.authorizers.name of type string",
        ),
        (
            HEAD + b"authorizers: [{type: Webhook, name: b, webhook: {timeout: xx}}]\n",
            'failed to load AuthorizationConfiguration from file: time: invalid duration "xx"',
        ),
        *(
            (
                HEAD + f"authorizers: [{{type: Webhook, name: b, webhook: {{{field}: null}}}}]\n".encode(),
                'failed to load AuthorizationConfiguration from file: time: invalid duration ""',
            )
            for field in ("timeout", "authorizedTTL", "unauthorizedTTL")
        ),
        (
            HEAD
            + (
                b"authorizers: [{type: Webhook, name: b, webhook: {timeout: 1s, subjectAccessReviewVersion: v1, "
                b"failurePolicy: Deny, "
                b"connectionInfo: {type: KubeConfigFile, kubeConfigFile: /nope}}}]\n"
            ),
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/nope": '
            "error loading file: stat /nope: no such file or directory",
        ),
        (
            HEAD
            + (
                b"authorizers: [{type: Webhook, name: a, webhook: {timeout: 40s, unauthorizedTTL: -1s, "
                b"subjectAccessReviewVersion: v2, "
                b"failurePolicy: x, connectionInfo: {type: foo}, matchConditions: [{expression: request.foo}, "
                b"{expression: request.user}]}}, {type: Foo}, {type: RBAC, name: b},{type: RBAC, name: b}, {}]\n"
            ),
            '[authorizers[0].timeout: Invalid value: "40s": must be > 0s and <= 30s, '
            'authorizers[0].unauthorizedTTL: Invalid value: "-1s": must be > 0s, '
            'authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1", '
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if "
            "match conditions are specified, "
            'authorizers[0].failurePolicy: Unsupported value: "x": supported values: "NoOpinion", "Deny", '
            'authorizers[0].connectionInfo.type: Unsupported value: {"Type":"foo","KubeConfigFile":null}: supported '
            'values: "InClusterConfig", "KubeConfigFile", '
            'authorizers[0].matchConditions[0].expression: Invalid value: "request.foo": compilation failed: ERROR: '
            "<input>:1:8: undefined field 'foo'\n | request.foo\n | .......^, "
            'authorizers[0].matchConditions[1].expression: Invalid value: "request.user": must '
            "evaluate to bool but got string, "
            'authorizers[1].type: Unsupported value: "Foo": supported values: '
            '"ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook", '
            'authorizers[3].type: Duplicate value: "RBAC", authorizers[4].type: Required value]',
        ),
    ],
)
def test_invalid_configurations_have_upstreams_errors(data: bytes, text: str) -> None:
    with pytest.raises(ValueError) as rejected:
        checked(data)
    assert str(rejected.value) == text


def test_a_reload_may_not_lose_what_is_built_in() -> None:
    with pytest.raises(ValueError, match=r"^missing required types: \[Node RBAC\]$"):
        checked(HEAD + b"authorizers: [{type: AlwaysAllow, name: alwaysallow}]\n", {"RBAC", "Node"})


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_unset_fields_have_defaults(version: str, tmp_path: Path) -> None:
    head = f"apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthorizationConfiguration\n"
    config = load_configuration(
        f"{head}authorizers: [{{type: Webhook, name: a, webhook: {{cacheAuthorizedRequests: false}}}}]\n".encode()
    )
    assert config["authorizers"][0]["webhook"] == {
        "authorizedTTL": "5m0s",
        "cacheAuthorizedRequests": False,
        "unauthorizedTTL": "30s",
        "cacheUnauthorizedRequests": True,
    }
