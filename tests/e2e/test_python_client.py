"""The unmodified official Python client, and an operator written with kopf."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from e2e.conftest import Target
from support.kubectl import Kubectl, wait_established
from support.waiting import until

kubernetes = pytest.importorskip("kubernetes")
OPERATOR = Path(__file__).parent / "operator_of_widgets.py"


@pytest.fixture(scope="module")
def api(server: Target):  # type: ignore[no-untyped-def]
    config = yaml.safe_load(server.kubeconfig.read_text())
    return kubernetes.config.new_client_from_config_dict(config)


@pytest.fixture(scope="module")
def widgets(admin: Kubectl, manifests: Path) -> None:
    admin("apply", "-f", str(manifests / "crd.yaml"))
    wait_established(admin, "widgets.e2e.example.com")


def test_objects_are_created_read_updated_and_deleted(api, kubectl: Kubectl) -> None:  # type: ignore[no-untyped-def]
    core, apps, namespace = kubernetes.client.CoreV1Api(api), kubernetes.client.AppsV1Api(api), kubectl.namespace
    body = kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(name="py"), data={"a": "1"})
    made = core.create_namespaced_config_map(namespace, body)
    assert made.metadata.uid and made.data == {"a": "1"}
    made.data["b"] = "2"
    assert core.replace_namespaced_config_map("py", namespace, made).data == {"a": "1", "b": "2"}
    with pytest.raises(kubernetes.client.ApiException) as conflict:
        core.replace_namespaced_config_map("py", namespace, made)
    assert conflict.value.status == 409
    container = kubernetes.client.V1Container(name="c", image="example/c:1")
    template = kubernetes.client.V1PodTemplateSpec(
        metadata=kubernetes.client.V1ObjectMeta(labels={"app": "py"}),
        spec=kubernetes.client.V1PodSpec(containers=[container]),
    )
    spec = kubernetes.client.V1DeploymentSpec(
        selector=kubernetes.client.V1LabelSelector(match_labels={"app": "py"}), template=template
    )
    deployment = kubernetes.client.V1Deployment(metadata=kubernetes.client.V1ObjectMeta(name="py"), spec=spec)
    assert apps.create_namespaced_deployment(namespace, deployment).spec.replicas == 1
    assert apps.patch_namespaced_deployment_scale("py", namespace, {"spec": {"replicas": 4}}).spec.replicas == 4
    assert [
        item.metadata.name for item in apps.list_namespaced_deployment(namespace, label_selector="app!=x").items
    ] == ["py"]
    core.delete_namespaced_config_map("py", namespace)
    with pytest.raises(kubernetes.client.ApiException) as missing:
        core.read_namespaced_config_map("py", namespace)
    assert missing.value.status == 404 and missing.value.reason == "Not Found"


def test_a_watch_delivers_events(api, kubectl: Kubectl) -> None:  # type: ignore[no-untyped-def]
    core, namespace = kubernetes.client.CoreV1Api(api), kubectl.namespace
    version = core.list_namespaced_secret(namespace).metadata.resource_version

    def work() -> None:
        kubectl("create", "secret", "generic", "seen", "--from-literal=a=b")
        kubectl("label", "secret", "seen", "x=y")
        kubectl("delete", "secret", "seen")

    worker = threading.Thread(target=work)
    worker.start()
    watch = kubernetes.watch.Watch()
    seen = []
    for event in watch.stream(core.list_namespaced_secret, namespace, resource_version=version, timeout_seconds=30):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watch.stop()
    worker.join()
    assert seen == [("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "seen")]


@pytest.mark.usefixtures("widgets")
def test_the_dynamic_client_finds_custom_resources(api, kubectl: Kubectl) -> None:  # type: ignore[no-untyped-def]
    found = kubernetes.dynamic.DynamicClient(api).resources.get(api_version="e2e.example.com/v1", kind="Widget")
    widget = {"apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    assert found.create(body=widget, namespace=kubectl.namespace).spec.color == "blue"
    applied = {**widget, "spec": {"size": 2}}
    assert (
        found.server_side_apply(
            body=applied, namespace=kubectl.namespace, field_manager="py", force_conflicts=True
        ).spec.size
        == 2
    )
    found.delete(name="w", namespace=kubectl.namespace)


@pytest.mark.usefixtures("widgets")
def test_an_operator_reconciles_its_objects(kubectl: Kubectl, tmp_path: Path) -> None:
    log = tmp_path / "kopf.log"
    command = [
        sys.executable,
        "-m",
        "kopf",
        "run",
        "--namespace",
        kubectl.namespace,
        "--standalone",
        "--verbose",
        str(OPERATOR),
    ]
    with log.open("wb") as out, subprocess.Popen(command, env=kubectl.env(), stdout=out, stderr=out) as operator:
        try:
            _operated(kubectl)
        except AssertionError:
            print(log.read_text()[-4000:])
            raise
        finally:
            operator.terminate()
            try:
                operator.wait(20)
            except subprocess.TimeoutExpired:
                operator.kill()


def _operated(kubectl: Kubectl) -> None:
    kubectl(
        "create",
        "-f",
        "-",
        stdin='{"apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}',
    )
    until(lambda: kubectl.run("get", "cm", "of-w").returncode == 0, timeout=40, description="the operator's work")
    assert kubectl.json("get", "cm", "of-w")["data"] == {"size": "1"}
    kubectl("patch", "widget", "w", "--type=merge", "-p", '{"spec": {"size": 8}}')
    kubectl("wait", "--for=jsonpath={.status.phase}=size 8", "widget/w", "--timeout=30s")
    assert kubectl.json("get", "cm", "of-w")["data"] == {"size": "8"}
    kubectl("delete", "widget", "w", "--timeout=30s")
    kubectl("wait", "--for=delete", "cm/of-w", "--timeout=30s")
