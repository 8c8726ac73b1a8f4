"""Tests of --admission-control-config-file: the configuration that each plugin gets, and the errors in invalid
files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tetrapod.core.admission.image_policy import read_policy as read_image_policy
from tetrapod.core.admission.limited_resources import read_limited
from tetrapod.core.admission.pod_node_selector import labels_of, read_selectors
from tetrapod.core.admission.pod_security_configuration import read_policy
from tetrapod.core.admission.pod_toleration_restriction import read_tolerations
from tetrapod.core.podsecurity.policy import LevelVersion
from tetrapod.generic.admission.configuration import PluginConfiguration, Unconfigurable
from tetrapod.generic.admission.configuration_file import read_configuration
from tetrapod.generic.admission.webhook.configuration import read_webhook_configuration
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.status import StatusError

V1 = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"


def configuration(directory: Path, text: str) -> PluginConfiguration:
    file = directory / "admission.yaml"
    file.write_text(text)
    return read_configuration(str(file))


def test_a_plugin_is_configured_in_place_or_in_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("own: 1")
    plugins = (
        "plugins: [{name: A, configuration: {b: 2, a: {}}}, {name: B, path: own.yaml}, {name: A, "
        "path: other}, {name: C}]"
    )
    for head in (V1, V1.replace("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")):
        found = configuration(tmp_path, head + plugins)
        assert [found.for_plugin(name) for name in "ABCD"] == [b'{"a":{},"b":2}', b"own: 1", None, None]


def test_a_file_that_does_not_exist_matters_to_the_plugin_that_is_made(tmp_path: Path) -> None:
    found = configuration(tmp_path, f"{V1}plugins: [{{name: A, path: away.yaml}}]")
    with pytest.raises(Unconfigurable, match=f"^Couldn't open admission plugin configuration {tmp_path}/away.yaml: "):
        found.for_plugin("A")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: b", "Object 'Kind' is missing in 'a: b'"),
        (V1 + "plugin: []", 'strict decoding error: unknown field "plugin"'),
        (
            V1 + "plugins: {}",
            (
                "json: cannot unmarshal object into Go struct field AdmissionConfiguration.plugins of type "
                "[]v1.AdmissionPluginConfiguration"
            ),
        ),
    ],
)
def test_a_file_of_another_kind_is_rejected(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(Unconfigurable) as rejected:
        configuration(tmp_path, text)
    assert str(rejected.value) == f"failed to read plugin config: {error}"


def test_a_legacy_file_configures_only_plugins_that_supported_it(tmp_path: Path) -> None:
    text = "podNodeSelectorPluginConfig: {a: b=c}"
    found = configuration(tmp_path, text)
    assert [found.for_plugin(name) for name in ("PodNodeSelector", "ImagePolicyWebhook", "PodSecurity")] == [
        text.encode(),
        text.encode(),
        None,
    ]


def test_selectors_of_namespaces_may_be_written_loosely() -> None:
    assert read_selectors(b"PodNodeSelectorPluginConfig: {a: x=y, b: 7}") == {"a": "x=y", "b": "7"}
    assert read_selectors(b"podNodeSelectorPluginConfig: [a]") == read_selectors(None) == {}
    assert labels_of("a=b, c = d") == {"a": "b", "c": "d"}


@pytest.mark.parametrize(
    ("selector", "error"), [("x", "invalid selector: [x]"), ("a=b=c", "invalid selector: [a b c]")]
)
def test_an_invalid_selector_is_a_server_error(selector: str, error: str) -> None:
    with pytest.raises(StatusError) as rejected:
        labels_of(selector)
    assert (rejected.value.code, rejected.value.reason, rejected.value.message) == (500, "", error)


def test_tolerations_are_checked_as_those_of_pods() -> None:
    head = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\n"
    found = read_tolerations(f"{head}default: [{{key: a, operator: Exists}}]".encode())
    assert (found.default, found.whitelist) == ([{"key": "a", "operator": "Exists"}], [])
    error = (
        r"^invalid config: \[podtolerationrestriction.whitelist\[0\].operator: Unsupported value: "
        r"\"Odd\": supported values: "
    )
    with pytest.raises(ValueError, match=error):
        read_tolerations(f"{head}whitelist: [{{key: a, operator: Odd}}]".encode())


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("allowTTL: 99999", "valid value is between 1s and 30m0s, got 27h46m39s"),
        ("retryBackoff: 300001", "valid value is between 1ns and 5m0s, got 5m0.001s"),
        ("kubeConfigFile: 7", "stat 7: no such file or directory"),
        (
            "denyTTL: -1",
            (
                "invalid configuration: no configuration has been provided, try setting "
                "KUBERNETES_MASTER environment variable"
            ),
        ),
        (
            "denyTTL: 1s",
            (
                "json: cannot unmarshal string into Go struct field imagePolicyWebhookConfig.imagePolicy.denyTTL of "
                "type time.Duration"
            ),
        ),
    ],
)
def test_an_invalid_image_policy_backend_is_rejected(policy: str, error: str) -> None:
    with pytest.raises(ValueError) as rejected:
        read_image_policy(f"imagePolicy: {{{policy}}}".encode())
    assert str(rejected.value) == error


def test_a_missing_image_policy_backend_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^no config specified$"):
        read_image_policy(None)


SECURITY = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"


def test_pod_security_has_defaults_and_exemptions() -> None:
    policy, exempt = read_policy(
        f"{SECURITY}defaults: {{enforce: baseline, enforce-version: v1.30}}\nexemptions: {{namespaces: [a]}}".encode()
    )
    assert policy.enforce == LevelVersion("baseline", "v1.30")
    assert policy.warn == LevelVersion("privileged", "latest")
    assert (exempt.namespaces, exempt.usernames) == (frozenset({"a"}), frozenset())


def test_errors_in_defaults_and_exemptions_are_reported_together() -> None:
    with pytest.raises(ValueError) as rejected:
        read_policy(
            (
                f"{SECURITY}defaults: {{enforce: strict, warn-version: v2.0}}\nexemptions: {{usernames: ['', a, a]}}"
            ).encode()
        )
    assert str(rejected.value) == (
        '[defaults.enforce: Invalid value: "strict": must be one of privileged, baseline, restricted, '
        'defaults.warn-version: Invalid value: "v2.0": must be "latest" or "v1.x", '
        'exemptions.usernames[0]: Invalid value: "": username must not be empty, '
        'exemptions.usernames[2]: Duplicate value: "a"]'
    )


def test_resources_limited_to_quotas_are_configured() -> None:
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n"
    scope = "{scopeName: PriorityClass, operator: In, values: [critical]}"
    limited = read_limited(
        f"{head}limitedResources: [{{resource: pods, matchContains: [cpu], matchScopes: [{scope}]}}]".encode()
    )
    pods, used = (
        GroupResource("", "pods"),
        {"requests.cpu": Quantity.of("1"), "limits.cpu": Quantity.of("0"), "pods": Quantity.of("1")},
    )
    assert limited.uncovered_resources(pods, used, []) == "requests.cpu"
    assert (
        limited.uncovered_resources(pods, used, ["requests.cpu"])
        == limited.uncovered_resources(GroupResource("", "services"), used, [])
        == ""
    )
    pod = {"spec": {"priorityClassName": "critical"}}
    assert limited.uncovered_scopes(pods, pod, []) == "[{PriorityClass In [critical]}]"
    assert (
        limited.uncovered_scopes(pods, pod, [{"spec": {"scopes": ["PriorityClass"]}}])
        == limited.uncovered_scopes(pods, {}, [])
        == ""
    )
    with pytest.raises(ValueError, match=r"^limitedResources\[0\].resource: Required value$"):
        read_limited(f"{head}limitedResources: [{{apiGroup: apps}}]".encode())


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("kubeConfigFile: near", 'kubeConfigFile: Invalid value: "near": must be an absolute file path'),
        ("kubeConfigFile: /away", "stat /away: no such file or directory"),
        ("staticManifestsDir: near", 'staticManifestsDir: Invalid value: "near": must be an absolute file path'),
        (
            "staticManifestsDir: /away",
            'staticManifestsDir: Invalid value: "/away": unable to read: stat /away: no such file or directory',
        ),
        ("staticManifestsDir: /dev/null", 'staticManifestsDir: Invalid value: "/dev/null": must be a directory'),
    ],
)
def test_webhooks_of_files_are_rejected(content: str, error: str) -> None:
    with pytest.raises(ValueError) as rejected:
        read_webhook_configuration(
            f"apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n{content}".encode()
        )
    assert str(rejected.value) == error
