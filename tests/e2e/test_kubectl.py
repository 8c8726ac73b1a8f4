"""kubectl's commands with one process and no cluster behind it; the assertions are about its printed output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import Target
from support.kubectl import Kubectl, wait_established
from support.waiting import until


def rows(text: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in text.strip().splitlines()]


def editor(tmp_path: Path, old: str, new: str) -> dict[str, str]:
    script = tmp_path / "editor.py"
    lines = ["import pathlib, sys", "file = pathlib.Path(sys.argv[1])", "text = file.read_text()"]
    lines += [f"assert {old!r} in text", f"file.write_text(text.replace({old!r}, {new!r}))"]
    script.write_text("\n".join(lines))
    return {"KUBE_EDITOR": f"{sys.executable} {script}"}


# --- get --------------------------------------------------------------------------------------------------------------


def test_get_prints_the_columns_of_the_kind(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    table = rows(kubectl("get", "deployments"))
    assert table[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert table[1][:4] == ["web", "0/2", "0", "0"]
    wide = rows(kubectl("get", "deploy/web", "-o", "wide"))
    assert wide[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1][5:] == ["web", "example/web:1", "app=web"]
    assert kubectl("get", "deploy,cm", "-l", "app=web", "-o", "name").split() == [
        "deployment.apps/web",
        "configmap/web",
    ]


def test_get_prints_objects_as_yaml_json_and_jsonpath(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    assert kubectl.json("get", "cm/web")["data"] == {"greeting": "hello"}
    assert "greeting: hello" in kubectl("get", "cm", "web", "-o", "yaml")
    assert kubectl("get", "cm/web", "-o", "jsonpath={.data.greeting}") == "hello"
    images = kubectl("get", "deploy", "-o", "jsonpath={.items[*].spec.template.spec.containers[*].image}")
    assert images == "example/web:1"
    columns = kubectl("get", "deploy", "-o", "custom-columns=WHO:.metadata.name,HOW MANY:.spec.replicas")
    assert rows(columns) == [["WHO", "HOW MANY"], ["web", "2"]]
    assert kubectl("get", "deploy/web", "-o", "go-template={{.spec.replicas}}") == "2"


def test_get_over_all_namespaces_with_labels_and_sorting(kubectl: Kubectl) -> None:
    for name, weight in (("b", "2"), ("a", "3"), ("c", "1")):
        kubectl("create", "configmap", name, f"--from-literal=weight={weight}")
        kubectl("label", "configmap", name, f"weight={weight}", "tour=yes")
    assert kubectl("get", "cm", "-l", "tour=yes", "--sort-by=.data.weight", "-o", "name").split() == [
        f"configmap/{n}" for n in "cba"
    ]
    assert kubectl("get", "cm", "-l", "weight in (1,2),tour", "-o", "name").split() == ["configmap/b", "configmap/c"]
    assert kubectl("get", "cm", "--field-selector=metadata.name=a", "-o", "name").split() == ["configmap/a"]
    everywhere = rows(kubectl("get", "cm", "-A", "-l", "tour", "-L", "weight", "--no-headers"))
    assert [[row[0], row[1], row[-1]] for row in everywhere] == [
        [kubectl.namespace, "a", "3"],
        [kubectl.namespace, "b", "2"],
        [kubectl.namespace, "c", "1"],
    ]
    assert "--show-labels" not in kubectl("get", "cm", "--show-labels", "-l", "tour")
    assert "NotFound" in kubectl.fails("get", "cm", "nothing")


def test_get_in_chunks(kubectl: Kubectl) -> None:
    documents = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n:02}", "labels": {"chunk": "y"}}}
        for n in range(12)
    ]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    found = kubectl("get", "cm", "-l", "chunk=y", "--chunk-size=5", "-o", "name").split()
    assert found == [f"configmap/c{n:02}" for n in range(12)]


def test_get_shows_the_events_of_a_watch(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "seen", "--from-literal=n=0")
    command = [
        *kubectl.command(),
        "get",
        "cm",
        "-l",
        "!nobody",
        "-w",
        "--output-watch-events",
        "--no-headers",
        "--field-selector=metadata.name=seen",
    ]
    with subprocess.Popen(command, env=kubectl.env(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().split()[0] == "ADDED"
            kubectl("annotate", "configmap", "seen", "n=1")
            assert process.stdout.readline().split()[0] == "MODIFIED"
            kubectl("delete", "configmap", "seen")
            assert process.stdout.readline().split()[0] == "DELETED"
        finally:
            process.kill()


def test_get_raw_reads_paths_that_are_not_resources(admin: Kubectl) -> None:
    assert json.loads(admin("get", "--raw", "/version"))["minor"] == "37"
    assert admin("get", "--raw", "/readyz") == "ok"
    assert "readyz check passed" in admin("get", "--raw", "/readyz?verbose")
    assert "apiserver_request_total" in admin("get", "--raw", "/metrics")
    assert json.loads(admin("get", "--raw", "/api/v1/namespaces/default"))["metadata"]["name"] == "default"


def test_get_by_subresource_and_category(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    assert kubectl.json("get", "deploy", "web", "--subresource=scale")["spec"]["replicas"] == 2
    assert "deployment.apps/web" in kubectl("get", "all")


# --- create, apply, diff, edit, patch, replace ------------------------------------------------------------------------


def test_create_works_for_every_kind_with_a_command(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("content\n")
    kubectl("create", "configmap", "c", f"--from-file={tmp_path}/file.txt", "--from-literal=k=v")
    kubectl("create", "secret", "generic", "s", "--from-literal=password=geheim")
    kubectl("create", "secret", "docker-registry", "reg", "--docker-username=u", "--docker-password=p")
    kubectl("create", "serviceaccount", "sa")
    kubectl("create", "deployment", "d", "--image=example/d:1", "--replicas=3", "--port=80")
    kubectl("create", "job", "j", "--image=example/j:1", "--", "true")
    kubectl("create", "cronjob", "cj", "--image=example/j:1", "--schedule=*/5 * * * *")
    kubectl("create", "job", "of-cj", "--from=cronjob/cj")
    kubectl("create", "service", "clusterip", "svc", "--tcp=80:8080")
    kubectl("create", "service", "nodeport", "np", "--tcp=80")
    kubectl("create", "service", "externalname", "ext", "--external-name=example.com")
    kubectl("create", "ingress", "i", "--rule=example.com/*=svc:80")
    kubectl("create", "role", "r", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "rb", "--role=r", "--user=jane")
    kubectl("create", "clusterrole", kubectl.namespace, "--verb=get", "--resource=nodes")
    kubectl("create", "clusterrolebinding", kubectl.namespace, f"--clusterrole={kubectl.namespace}", "--group=g")
    kubectl("create", "quota", "q", "--hard=pods=10,requests.cpu=1")
    kubectl("create", "poddisruptionbudget", "pdb", "--selector=app=d", "--min-available=1")
    kubectl("create", "priorityclass", kubectl.namespace, "--value=10")
    assert kubectl.json("get", "cm", "c")["data"] == {"file.txt": "content\n", "k": "v"}
    assert kubectl("get", "secret", "s", "-o", "go-template={{.data.password|base64decode}}") == "geheim"
    assert kubectl.json("get", "svc", "svc")["spec"]["clusterIP"].startswith("10.0.")
    assert 30000 <= kubectl.json("get", "svc", "np")["spec"]["ports"][0]["nodePort"] <= 32767
    assert kubectl.json("get", "deploy", "d")["spec"]["replicas"] == 3
    assert kubectl.json("get", "job", "of-cj")["metadata"]["ownerReferences"][0]["name"] == "cj"
    assert "already exists" in kubectl.fails("create", "configmap", "c")
    for kind in ("clusterrole", "clusterrolebinding", "priorityclass"):
        kubectl("delete", kind, kubectl.namespace)


def test_create_dry_run_stores_nothing(kubectl: Kubectl, manifests: Path) -> None:
    assert "created (server dry run)" in kubectl("create", "-f", str(manifests / "web.yaml"), "--dry-run=server")
    assert kubectl("get", "deploy", "-o", "name") == ""
    assert "kind: ConfigMap" in kubectl("create", "configmap", "c", "--dry-run=client", "-o", "yaml")


def test_apply_on_the_clients_side(kubectl: Kubectl, manifests: Path, tmp_path: Path) -> None:
    text = (manifests / "web.yaml").read_text()
    assert kubectl("apply", "-f", str(manifests / "web.yaml")).split("\n")[:2] == [
        "deployment.apps/web created",
        "configmap/web created",
    ]
    assert "unchanged" in kubectl("apply", "-f", str(manifests / "web.yaml"))
    changed = tmp_path / "web.yaml"
    changed.write_text(text.replace("web:1", "web:2").replace("greeting: hello", "farewell: bye"))
    assert "deployment.apps/web configured" in kubectl("apply", "-f", str(changed))
    assert kubectl.json("get", "cm", "web")["data"] == {"farewell": "bye"}
    assert kubectl.json("get", "deploy", "web")["metadata"]["generation"] == 2
    assert "web:1" not in kubectl("apply", "view-last-applied", "deploy/web")


def test_apply_prunes_what_the_files_no_longer_have(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    only = manifests.joinpath("web.yaml").read_text().split("---")[0]
    out = kubectl("apply", "--prune", "-l", "app=web", "-f", "-", stdin=only)
    assert "configmap/web pruned" in out


def test_apply_on_the_servers_side(kubectl: Kubectl, manifests: Path) -> None:
    web = str(manifests / "web.yaml")
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", web, "--field-manager=one")
    kubectl("scale", "deploy/web", "--replicas=5")
    rejected = kubectl.fails("apply", "--server-side", "-f", web, "--field-manager=one")
    assert ".spec.replicas" in rejected and "conflict" in rejected
    kubectl("apply", "--server-side", "-f", web, "--field-manager=one", "--force-conflicts")
    found = kubectl.json("get", "deploy", "web", "--show-managed-fields")
    assert found["spec"]["replicas"] == 2
    owners = {
        entry["manager"]
        for entry in found["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    }
    assert owners == {"one"}


def test_apply_rejects_unknown_fields_and_wrong_types(kubectl: Kubectl) -> None:
    manifest = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dat": {}}'
    assert 'unknown field "dat"' in kubectl.fails("apply", "--validate=strict", "-f", "-", stdin=manifest)
    done = kubectl.run("apply", "--validate=warn", "-f", "-", stdin=manifest)
    assert done.returncode == 0 and 'unknown field "dat"' in done.stderr
    wrong = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"a": 1}}'
    assert "cannot unmarshal number into Go struct field ConfigMap.data of type string" in kubectl.fails(
        "apply", "-f", "-", stdin=wrong
    )
    assert "not found" in kubectl.fails("get", "configmaps", "d")


def test_diff_shows_what_apply_would_change(kubectl: Kubectl, manifests: Path) -> None:
    web = manifests / "web.yaml"
    kubectl("apply", "-f", str(web))
    assert kubectl.run("diff", "-f", str(web)).returncode == 0
    done = kubectl.run("diff", "-f", "-", stdin=web.read_text().replace("web:1", "web:2"))
    assert done.returncode == 1
    assert "+      - image: example/web:2" in done.stdout and "-      - image: example/web:1" in done.stdout
    assert (
        kubectl.run(
            "diff", "--server-side", "--force-conflicts", "-f", "-", stdin=web.read_text().replace("hello", "hi")
        ).returncode
        == 1
    )


def test_edit_changes_an_object(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "configmap", "c", "--from-literal=k=before")
    assert "edited" in kubectl("edit", "configmap", "c", env=editor(tmp_path, "k: before", "k: after"))
    assert kubectl.json("get", "cm", "c")["data"] == {"k": "after"}


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", '{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example/web:3"}]}}}}'),
        ("merge", '{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example/web:3"}]}}}}'),
        ("json", '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example/web:3"}]'),
    ],
)
def test_patch_of_every_type(kubectl: Kubectl, manifests: Path, kind: str, patch: str) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    kubectl("patch", "deployment", "web", f"--type={kind}", "-p", patch)
    container = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "example/web:3"
    assert ("ports" in container) is (kind != "merge")


def test_patch_of_a_subresource(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    kubectl(
        "patch",
        "deploy",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status": {"readyReplicas": 2, "replicas": 2}}',
    )
    assert rows(kubectl("get", "deploy"))[1][1] == "2/2"
    kubectl("patch", "deploy", "web", "--subresource=scale", "--type=merge", "-p", '{"spec": {"replicas": 4}}')
    assert kubectl.json("get", "deploy", "web")["spec"]["replicas"] == 4


def test_replace_puts_the_whole_object(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=1")
    found = kubectl.json("get", "cm", "c")
    found["data"] = {"b": "2"}
    kubectl("replace", "-f", "-", stdin=json.dumps(found))
    assert kubectl.json("get", "cm", "c")["data"] == {"b": "2"}
    assert "Conflict" in kubectl.fails("replace", "-f", "-", stdin=json.dumps(found))
    del found["metadata"]["resourceVersion"], found["metadata"]["uid"]
    kubectl("replace", "--force", "-f", "-", stdin=json.dumps(found))
    assert kubectl.json("get", "cm", "c")["metadata"]["uid"] != found["metadata"].get("uid")


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c")
    kubectl("label", "cm", "c", "tier=front")
    assert "already has a value" in kubectl.fails("label", "cm", "c", "tier=back")
    kubectl("label", "cm", "c", "tier=back", "--overwrite")
    kubectl("annotate", "cm", "c", "note=some words")
    meta = kubectl.json("get", "cm", "c")["metadata"]
    assert meta["labels"] == {"tier": "back"} and meta["annotations"] == {"note": "some words"}
    kubectl("label", "cm", "c", "tier-")
    assert "labels" not in kubectl.json("get", "cm", "c")["metadata"]


# --- delete and wait --------------------------------------------------------------------------------------------------


def test_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c")
    kubectl("patch", "cm", "c", "--type=merge", "-p", '{"metadata": {"finalizers": ["example.com/held"]}}')
    with subprocess.Popen(
        [*kubectl.command(), "delete", "cm", "c"], env=kubectl.env(), stdout=subprocess.PIPE, text=True
    ) as process:
        until(lambda: "deletionTimestamp" in kubectl.json("get", "cm", "c")["metadata"], description="the deletion")
        assert process.poll() is None
        kubectl("patch", "cm", "c", "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]')
        assert process.wait(20) == 0
    assert "NotFound" in kubectl.fails("get", "cm", "c")


def owned(kubectl: Kubectl, owner: str, name: str) -> None:
    uid = kubectl.json("get", "cm", owner)["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": True}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [reference]}}
    kubectl("create", "-f", "-", stdin=json.dumps(child))


@pytest.mark.parametrize("policy", ["background", "foreground", "orphan"])
def test_delete_propagates_to_dependents(kubectl: Kubectl, policy: str) -> None:
    kubectl("create", "configmap", "owner")
    owned(kubectl, "owner", "child")
    kubectl("delete", "cm", "owner", f"--cascade={policy}")
    if policy == "orphan":
        until(lambda: "ownerReferences" not in kubectl.json("get", "cm", "child")["metadata"], description="orphaning")
    else:
        kubectl("wait", "--for=delete", "cm/child", "--timeout=20s")


def test_delete_by_selector_and_all(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c"):
        kubectl("create", "secret", "generic", name)
    kubectl("label", "secret", "a", "b", "gone=yes")
    assert kubectl("delete", "secret", "-l", "gone=yes").count("deleted") == 2
    assert kubectl("get", "secret", "-o", "name").split() == ["secret/c"]
    kubectl("delete", "secret", "--all")
    assert kubectl("get", "secret", "-o", "name") == ""
    kubectl("delete", "secret", "c", "--ignore-not-found")


def test_deleting_a_namespace_empties_it(admin: Kubectl) -> None:
    admin("create", "namespace", "short-lived")
    admin("create", "configmap", "c", "--namespace=short-lived")
    admin("delete", "namespace", "short-lived", "--timeout=30s")
    assert "NotFound" in admin.fails("get", "namespace", "short-lived")


def test_wait_for_conditions_fields_and_deletion(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    status = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    timer = threading.Timer(
        0.3, lambda: kubectl("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    )
    timer.start()
    assert "condition met" in kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=20s")
    timer.join()
    assert "condition met" in kubectl("wait", "--for=jsonpath={.spec.replicas}=2", "deploy/web", "--timeout=20s")
    assert "timed out" in kubectl.fails("wait", "--for=condition=Progressing", "deploy/web", "--timeout=1s")


# --- describe, explain, discovery -------------------------------------------------------------------------------------


def test_describe_shows_fields_and_events(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    kubectl("run", "p", "--image=example/p:1")
    kubectl("expose", "deploy/web", "--port=80")
    assert re.search(r"Replicas:\s+2 desired", kubectl("describe", "deploy", "web"))
    assert re.search(r"Image:\s+example/p:1", kubectl("describe", "pod", "p"))
    assert re.search(r"Selector:\s+app=web", kubectl("describe", "svc", "web"))
    assert re.search(r"Status:\s+Active", kubectl("describe", "namespace", kubectl.namespace))
    assert "greeting" in kubectl("describe", "cm", "web")
    assert "system:masters" in kubectl("describe", "clusterrolebinding", "cluster-admin")


def test_explain_has_descriptions(admin: Kubectl) -> None:
    text = admin("explain", "deployment.spec.replicas")
    assert "FIELD: replicas <integer>" in text
    assert "Number of desired pods" in text
    assert re.search(r"KIND:\s+Pod", admin("explain", "pods"))
    assert "containers" in admin("explain", "pod.spec", "--recursive")
    assert "image" in admin("explain", "cronjob.spec.jobTemplate.spec.template.spec.containers")


def test_api_resources_and_versions(admin: Kubectl) -> None:
    resources = {line.split()[0]: line for line in admin("api-resources", "-o", "wide").splitlines()}
    assert (
        "deploy" in resources["deployments"]
        and "create,delete,deletecollection,get,list,patch,update,watch" in resources["deployments"]
    )
    assert "podsecuritypolicies" not in resources
    assert admin("api-resources", "--api-group=batch", "-o", "name").split() == ["cronjobs.batch", "jobs.batch"]
    assert "namespaces" in admin("api-resources", "--namespaced=false", "--no-headers")
    versions = admin("api-versions").split()
    assert {
        "v1",
        "apps/v1",
        "batch/v1",
        "rbac.authorization.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "apiregistration.k8s.io/v1",
    } <= set(versions)


def test_version_and_cluster_info(admin: Kubectl, server: Target) -> None:
    found = admin.json("version")
    assert found["serverVersion"]["gitVersion"] == "v1.37.1" and found["serverVersion"]["compiler"] == "cpython"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", admin("cluster-info"))
    assert f"control plane is running at {server.url}" in plain


# --- authorization ----------------------------------------------------------------------------------------------------


def test_auth_can_i_and_whoami(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "delete", "nodes").strip() == "yes"
    jane = ("--as=jane", "--as-group=system:authenticated")
    assert kubectl.run("auth", "can-i", "list", "pods", *jane).stdout.strip() == "no"
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=jane")
    until(
        lambda: kubectl.run("auth", "can-i", "list", "pods", *jane).stdout.strip() == "yes",
        description="the permission",
    )
    assert "pods" in kubectl("auth", "can-i", "--list", *jane)
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    assert "Forbidden" in kubectl.fails("get", "secrets", *jane)


def test_auth_reconcile_creates_a_role(kubectl: Kubectl) -> None:
    role: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": kubectl.namespace},
    }
    role["rules"] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    assert "reconciled" in kubectl("auth", "reconcile", "-f", "-", stdin=json.dumps(role))


def test_a_token_without_a_certificate_authenticates(kubectl: Kubectl, server: Target) -> None:
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "rolebinding", "robot", "--clusterrole=view", f"--serviceaccount={kubectl.namespace}:robot")
    token = kubectl("create", "token", "robot", "--duration=10m").strip()
    bare = Kubectl(kubectl.home, None, kubectl.namespace)
    flags = (f"--server={server.url}", f"--certificate-authority={server.ca}", f"--token={token}")
    until(lambda: bare.run("get", "pods", *flags).returncode == 0, description="the view")
    assert f"system:serviceaccount:{kubectl.namespace}:robot" in bare("auth", "whoami", *flags)
    assert "forbidden" in bare.fails("create", "configmap", "c", *flags)
    assert "Unauthorized" in bare.fails("get", "pods", *flags[:2], "--token=wrong")


def test_a_hand_made_kubeconfig_works(kubectl: Kubectl, server: Target, tmp_path: Path) -> None:
    own = Kubectl(tmp_path, tmp_path / "config", kubectl.namespace)
    token = kubectl("create", "token", "default").strip()
    own("config", "set-cluster", "c", f"--server={server.url}", f"--certificate-authority={server.ca}", "--embed-certs")
    own("config", "set-credentials", "u", f"--token={token}")
    own("config", "set-context", "x", "--cluster=c", "--user=u")
    own("config", "use-context", "x")
    assert "system:serviceaccount:" in own("auth", "whoami")


def test_certificates_are_approved(kubectl: Kubectl, tmp_path: Path) -> None:
    key, request = tmp_path / "key.pem", tmp_path / "request.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-new",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            key,
            "-subj",
            "/CN=jane/O=dev",
            "-out",
            request,
        ],
        check=True,
        capture_output=True,
    )
    import base64

    encoded = base64.b64encode(request.read_bytes()).decode()
    name = kubectl.namespace
    csr = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name}}
    csr["spec"] = {"request": encoded, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    kubectl("create", "-f", "-", stdin=json.dumps(csr))
    assert rows(kubectl("get", "csr", name))[1][-1] == "Pending"
    assert "approved" in kubectl("certificate", "approve", name)
    assert rows(kubectl("get", "csr", name))[1][-1] == "Approved"
    assert kubectl.json("get", "csr", name)["spec"]["username"] == "kubernetes-admin"
    kubectl("delete", "csr", name)


# --- workloads --------------------------------------------------------------------------------------------------------


def test_scale_and_autoscale(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    assert "scaled" in kubectl("scale", "deployment", "web", "--replicas=4", "--current-replicas=2")
    assert kubectl.json("get", "deploy", "web")["spec"]["replicas"] == 4
    kubectl("autoscale", "deployment", "web", "--min=2", "--max=9", "--cpu-percent=70")
    found = kubectl.json("get", "hpa", "web")
    assert found["spec"]["maxReplicas"] == 9 and found["spec"]["scaleTargetRef"]["kind"] == "Deployment"


def test_expose_makes_a_service(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    kubectl("expose", "deployment", "web", "--port=8080", "--target-port=80", "--type=NodePort")
    spec = kubectl.json("get", "svc", "web")["spec"]
    assert spec["selector"] == {"app": "web"} and spec["ports"][0]["targetPort"] == 80
    assert spec["ports"][0]["nodePort"] >= 30000


def test_run_makes_a_pod(kubectl: Kubectl) -> None:
    kubectl("run", "p", "--image=example/p:1", "--env=A=b", "--labels=app=p", "--", "sleep", "1")
    pod = kubectl.json("get", "pod", "p")
    assert pod["spec"]["containers"][0]["args"] == ["sleep", "1"]
    assert pod["spec"]["serviceAccountName"] == "default"
    assert pod["status"]["phase"] == "Pending"
    assert rows(kubectl("get", "pods"))[1][:3] == ["p", "0/1", "Pending"]
    kubectl("set", "image", "pod/p", "p=example/p:2")
    kubectl("delete", "pod", "p", "--force", "--grace-period=0")
    assert "NotFound" in kubectl.fails("get", "pod", "p")


def test_set_changes_a_template(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    kubectl("set", "image", "deploy/web", "web=example/web:9")
    kubectl("set", "env", "deploy/web", "COLOR=red")
    kubectl("set", "resources", "deploy/web", "--limits=cpu=200m,memory=64Mi")
    kubectl("set", "serviceaccount", "deploy/web", "default")
    spec = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    assert container["image"] == "example/web:9"
    assert container["env"] == [{"name": "COLOR", "value": "red"}]
    assert container["resources"]["limits"] == {"cpu": "200m", "memory": "64Mi"}


def test_rollout_status_history_restart_and_pause(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    deployment = kubectl.json("get", "deploy", "web")
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    kubectl("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=20s")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": deployment["metadata"]["uid"],
        "controller": True,
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": "web-1",
            "labels": {"app": "web"},
            "annotations": {"deployment.kubernetes.io/revision": "1", "kubernetes.io/change-cause": "the first"},
            "ownerReferences": [owner],
        },
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": deployment["spec"]["template"]},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(replica_set))
    assert rows(kubectl("rollout", "history", "deploy/web"))[-1] == ["1", "the first"]
    kubectl("rollout", "restart", "deploy/web")
    annotations = kubectl.json("get", "deploy", "web")["spec"]["template"]["metadata"]["annotations"]
    assert "kubectl.kubernetes.io/restartedAt" in annotations
    kubectl("rollout", "pause", "deploy/web")
    assert kubectl.json("get", "deploy", "web")["spec"]["paused"] is True
    kubectl("rollout", "resume", "deploy/web")


def test_nodes_are_tainted_and_cordoned(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
    kubectl("taint", "node", name, "dedicated=infra:NoSchedule")
    assert {"key": "dedicated", "value": "infra", "effect": "NoSchedule"} in kubectl.json("get", "node", name)["spec"][
        "taints"
    ]
    kubectl("taint", "node", name, "dedicated-")
    kubectl("cordon", name)
    assert "SchedulingDisabled" in kubectl("get", "node", name)
    kubectl("uncordon", name)
    assert "unschedulable" not in kubectl.json("get", "node", name)["spec"]
    kubectl("drain", name, "--ignore-daemonsets")
    kubectl("delete", "node", name)


# --- custom resources -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def widgets(admin: Kubectl, manifests: Path) -> None:
    admin("apply", "-f", str(manifests / "crd.yaml"))
    wait_established(admin, "widgets.e2e.example.com")


@pytest.mark.usefixtures("widgets")
def test_custom_resources_work_with_all_commands(kubectl: Kubectl) -> None:
    def manifest(size: object) -> str:
        return json.dumps(
            {"apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": size}}
        )

    kubectl("apply", "-f", "-", stdin=manifest(3))
    assert [row[:2] for row in rows(kubectl("get", "wg"))] == [["NAME", "SIZE"], ["w", "3"]]
    assert rows(kubectl("get", "widgets", "-o", "wide"))[1][2] == "blue"
    assert kubectl.fails("apply", "-f", "-", stdin=manifest(0))
    assert kubectl.fails("apply", "-f", "-", stdin=manifest("large"))
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest(5))
    kubectl("patch", "widget", "w", "--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Ready"}}')
    assert "condition met" in kubectl("wait", "--for=jsonpath={.status.phase}=Ready", "widget/w", "--timeout=20s")
    kubectl("scale", "widget", "w", "--replicas=7")
    assert kubectl.json("get", "widget", "w")["spec"] == {"size": 5, "color": "blue", "replicas": 7}
    assert "widget.e2e.example.com/w" in kubectl("get", "all", "-o", "name")
    assert "Color:" in kubectl("describe", "widget", "w")
    kubectl("delete", "widget", "w")


@pytest.mark.usefixtures("widgets")
def test_custom_resources_are_explained(admin: Kubectl) -> None:
    until(lambda: admin.run("explain", "widget.spec.size").returncode == 0, description="the schema")
    assert "How large it is." in admin("explain", "widget.spec.size")
    assert "widgets.e2e.example.com" in admin("api-resources", "--api-group=e2e.example.com", "-o", "name")


# --- proxy ------------------------------------------------------------------------------------------------------------


def test_proxy_serves_the_api_on_loopback(admin: Kubectl) -> None:
    with subprocess.Popen(
        [*admin.command(), "proxy", "--port=0"], env=admin.env(), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().rsplit(" ", 1)[1].strip()
            with urllib.request.urlopen(f"http://{address}/api/v1/namespaces", timeout=10) as answer:
                assert json.load(answer)["kind"] == "NamespaceList"
        finally:
            process.kill()
