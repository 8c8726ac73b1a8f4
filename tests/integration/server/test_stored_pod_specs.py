"""Pods that were stored before a rule existed, or while a feature gate was enabled, can still be updated.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from integration.server.edited_store import Setting, merged, serving
from support.forms import ETCD, STOCK, feature_gates
from support.https_client import MERGE, causes, created
from tetrapod.machinery.gvk import Object

PODS: Final = "/api/v1/namespaces/default/pods"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
LABELLED: Final = {"metadata": {"labels": {"a": "b"}}}
CONTAINER: Final = {"name": "c", "image": "i"}
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LABEL_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
INVALID: Final = [{"key": "k", "operator": "In", "values": ["a b"]}]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
DEVICES: Final = {
    "hostUsers": False,
    "containers": [{**CONTAINER, "volumeDevices": [{"name": "v", "devicePath": "/dev/v"}]}],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}],
}
TOKEN: Final = {"serviceAccountToken": {"path": "../t", "expirationSeconds": 3600}}
ADMINISTERING: Final = {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}
SHOWN: Final = json.dumps(
    {
        "Capabilities": {"Add": ["CAP_SYS_ADMIN"], "Drop": None},
        **dict.fromkeys(("Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot")),
        "ReadOnlyRootFilesystem": None,
        "AllowPrivilegeEscalation": False,
        **dict.fromkeys(("ProcMount", "SeccompProfile", "AppArmorProfile")),
    },
    separators=(",", ":"),
)
CASES: Final[dict[str, tuple[Object, list[str]]]] = {
    "huge pages": (
        {"containers": [{**CONTAINER, "resources": {"limits": {"hugepages-2Mi": "1Mi", "cpu": "1"}}}]},
        [
            f'spec.containers[0].resources.{kind}[hugepages-2Mi]: Invalid value: "1Mi": 1Mi is not positive integer '
            "multiple of hugepages-2Mi"
            for kind in ("limits", "requests")
        ],
    ),
    "pod affinity": (
        {
            "affinity": {
                "podAntiAffinity": {
                    REQUIRED: [{"topologyKey": "k", "labelSelector": {"matchExpressions": INVALID}}],
                }
            }
        },
        [
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].values[0]: Invalid value: "
            f'"a b": {LABEL_VALUE}'
        ],
    ),
    "node affinity": (
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": INVALID}]}}}},
        [
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "
            f'"a b": {LABEL_VALUE}'
        ],
    ),
    "topology spread": (
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "k",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchExpressions": INVALID},
                }
            ]
        },
        [
            "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values[0]: Invalid value: "
            f'"a b": {LABEL_VALUE}'
        ],
    ),
    "token path": (
        {"volumes": [{"name": "v", "projected": {"defaultMode": 420, "sources": [TOKEN]}}]},
        ["spec.volumes[0].projected.path: Invalid value: \"../t\": must not contain '..'"],
    ),
    "sysctls": (
        {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}},
        [
            'spec.securityContext.sysctls[0].name: Invalid value: "net.core.somaxconn": may not be specified when '
            "'hostNetwork' is true"
        ],
    ),
    "devices": (
        DEVICES,
        ["spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"],
    ),
    "image volume": (
        {"volumes": [{"name": "v", "image": {"reference": "", "pullPolicy": "Always"}}]},
        ["spec.volumes[0].image.reference: Required value"],
    ),
    "capabilities": (
        {"containers": [{**CONTAINER, "securityContext": ADMINISTERING}]},
        [
            f"spec.containers[0].securityContext: Invalid value: {SHOWN}: cannot set `allowPrivilegeEscalation` to "
            "false and `capabilities.Add` CAP_SYS_ADMIN"
        ],
    ),
    "resize policy": (
        {
            "initContainers": [
                {
                    **CONTAINER,
                    "name": "i",
                    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
                }
            ]
        },
        [
            'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set '
            "to 'RestartContainer' for non-sidecar initContainers"
        ],
    ),
}


def pod(name: str, **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], **spec}}


@pytest.fixture(scope="module", params=[ETCD, STOCK])
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with serving(tmp_path_factory.mktemp("stored"), request.param) as made:
        yield made


@pytest.mark.parametrize("case", CASES)
def test_only_a_stored_spec_may_break_a_younger_rule(setting: Setting, case: str) -> None:
    spec, errors = CASES[case]
    name = case.replace(" ", "-")
    client, path = setting.client, f"{PODS}/{name}"
    assert causes(client.call("POST", PODS, pod(name, automountServiceAccountToken=False, **spec))) == errors
    valid = created(client, PODS, pod(name, automountServiceAccountToken=False, hostUsers=spec.get("hostUsers", True)))
    defaults = {
        kind: [merged(valid["spec"]["containers"][0], one) for one in spec[kind]]
        for kind in spec
        if kind in ("containers", "initContainers")
    }
    setting.replace(path, f"/registry/pods/default/{name}", {"spec": {**spec, **defaults}})
    updated = client.call("PATCH", path, LABELLED, MERGE)
    assert (updated.status, updated.body["metadata"].get("labels")) == (200, {"a": "b"}), updated.message


def test_only_a_stored_deletion_cost_may_be_no_number(setting: Setting) -> None:
    body = pod("cost")
    body["metadata"]["annotations"] = {COST: "x"}
    error = f'metadata.annotations[{COST}]: Invalid value: "x": must be a 32bit integer'
    assert causes(setting.client.call("POST", PODS, body)) == [error]
    created(setting.client, PODS, pod("cost"))
    path = f"{PODS}/cost"
    assert causes(setting.client.call("PATCH", path, {"metadata": body["metadata"]}, MERGE)) == [error]
    setting.replace(path, "/registry/pods/default/cost", {"metadata": {"annotations": {COST: "x"}}})
    assert setting.client.call("PATCH", path, LABELLED, MERGE).status == 200
    assert setting.client.call("PATCH", f"{path}/status", {"status": {"message": "m"}}, MERGE).status == 200


def test_stored_pod_templates_may_break_younger_rules_too(setting: Setting) -> None:
    spec, (error,) = CASES["sysctls"]
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    body = {
        "metadata": {"name": "d"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
    created(setting.client, DEPLOYMENTS, body)
    path, change = f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": spec}}}
    assert causes(setting.client.call("PATCH", path, change, MERGE)) == [
        error.replace("spec.", "spec.template.spec.", 1)
    ]
    setting.replace(path, "/registry/deployments/default/d", change)
    updated = setting.client.call("PATCH", path, {"spec": {"template": {"metadata": {"labels": {"b": "c"}}}}}, MERGE)
    assert updated.status == 200, updated.message


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_merged_label_keys_are_kept_without_their_gate(form: str, tmp_path: Path) -> None:
    gate = feature_gates(["MatchLabelKeysInPodTopologySpreadSelectorMerge"], enabled=False)
    selector = {"matchLabels": {"app": "a"}}
    constraint = {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    spec = {"topologySpreadConstraints": [{**constraint, "matchLabelKeys": ["app"]}]}
    with serving(tmp_path, form, gate) as setting:
        assert causes(setting.client.call("POST", PODS, pod("keys", **spec))) == [
            'spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "app": exists in both matchLabelKeys '
            "and labelSelector"
        ]
        created(setting.client, PODS, pod("keys"))
        path = f"{PODS}/keys"
        setting.replace(path, "/registry/pods/default/keys", {"spec": spec})
        assert setting.client.call("PATCH", path, LABELLED, MERGE).status == 200


RULES: Final = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}]
RESTARTS: Final = ("ContainerRestartRules", "RestartAllContainersOnContainerExits", "EnvFiles")
RESTARTING: Final[Object] = {
    "containers": [{**CONTAINER, "restartPolicy": "Never", "restartPolicyRules": RULES}],
    "initContainers": [
        {**CONTAINER, "name": "i", "restartPolicy": "OnFailure"},
        {**CONTAINER, "name": "s", "restartPolicy": "Always", "restartPolicyRules": RULES},
    ],
}


def restarts(body: Object) -> list[Object]:
    spec = body["spec"]
    names = ("restartPolicy", "restartPolicyRules")
    return [
        {name: container[name] for name in names if name in container}
        for container in (*spec["containers"], *spec["initContainers"])
    ]


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_new_pods_lose_restart_rules_without_their_gate(form: str, tmp_path: Path) -> None:
    with serving(tmp_path, form, feature_gates(RESTARTS, enabled=False)) as setting:
        client = setting.client
        made = created(client, PODS, pod("p", **RESTARTING))
        assert restarts(made) == [{}, {}, {"restartPolicy": "Always"}]
        path = f"{PODS}/p"
        change = {
            kind: [merged(old, new) for old, new in zip(made["spec"][kind], RESTARTING[kind], strict=True)]
            for kind in RESTARTING
        }
        setting.replace(path, "/registry/pods/default/p", {"spec": change})
        updated = client.call("PATCH", path, LABELLED, MERGE)
        assert updated.status == 200, updated.message
        assert restarts(updated.body) == restarts({"spec": RESTARTING})
        environment = [{"name": "A", "valueFrom": {}}]
        (error,) = causes(client.call("POST", PODS, pod("q", containers=[{**CONTAINER, "env": environment}])))
        assert error.endswith(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        )


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_no_rule_restarts_all_containers_without_its_gate(form: str, tmp_path: Path) -> None:
    gate = feature_gates(["RestartAllContainersOnContainerExits"], enabled=False)
    with serving(tmp_path, form, gate) as setting:
        assert causes(setting.client.call("POST", PODS, pod("p", **RESTARTING))) == [
            'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "RestartAllContainers": supported '
            'values: "Restart"',
            "spec.initContainers[1].restartPolicyRules: Forbidden: restartPolicyRules are not allowed for init "
            "containers with restart policy Always",
        ]


def test_a_terminated_container_runs_again_if_it_is_restarted(setting: Setting) -> None:
    client = setting.client
    rule = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1, 2]}}
    never = {"image": "i", "restartPolicy": "Never"}
    containers: list[Object] = [
        {"name": "plain", "image": "i"},
        {"name": "never", **never},
        {"name": "ruled", **never, "restartPolicyRules": [rule]},
        {"name": "failing", "image": "i", "restartPolicy": "OnFailure"},
    ]
    created(client, PODS, pod("restarts", containers=containers))
    path = f"{PODS}/restarts/status"

    def statuses(key: str, state: Object) -> Object:
        base = {"image": "i", "imageID": "i", "restartCount": 0, "ready": False}
        return {"status": {key: [{**base, "name": one["name"], "state": state} for one in containers]}}

    def after(code: int) -> list[str]:
        ended = statuses("containerStatuses", {"terminated": {"exitCode": code}})
        assert client.call("PATCH", path, ended, MERGE).status == 200
        reply = client.call("PATCH", path, statuses("containerStatuses", {"running": {}}), MERGE)
        if reply.status == 200:
            return []
        assert all(error.endswith("may not be transitioned to non-terminated state") for error in causes(reply))
        return [error.partition(": ")[0] for error in causes(reply)]

    def state(index: int) -> str:
        return f"status.containerStatuses[{index}].state"

    assert after(0) == [state(1), state(3)]
    assert after(1) == [state(1), state(2)]
    assert after(3) == [state(1)]
