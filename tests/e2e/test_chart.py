"""Tests of the rendered Helm chart: with any values it is hardened and complete, and the command line accepts its
flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support import helm
from support.cli import parsed_command
from support.helm import CHART, Object, of_kind, pod_templates, render, settings

FOUR = ("aggregator", "core", "extensions", "auth")
EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
GIVEN_ELSEWHERE = {"etcd-client", "redis-password", *(f"my-{name}" for name in (*FOUR, "monitoring"))}
"""Secrets that the examples require to exist."""


@pytest.fixture(scope="module", params=[None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def objects(request: pytest.FixtureRequest) -> list[Object]:
    return render(*(["--values", str(request.param)] if request.param else []))


def containers(objects: list[Object]) -> Iterator[tuple[str, Object, Object]]:
    for name, template in pod_templates(objects).items():
        for container in template["spec"]["containers"]:
            yield f"{name}/{container['name']}", template, container


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def test_helm_lint_reports_nothing(values: Path | None) -> None:
    output = helm.helm("lint", "--strict", str(CHART), helm.KUBERNETES, *(["--values", str(values)] if values else []))
    assert "1 chart(s) linted, 0 chart(s) failed" in output
    assert "[WARNING]" not in output


def test_containers_run_with_least_privileges(objects: list[Object]) -> None:
    assert [name for name, _, _ in containers(objects) if name.endswith("-core/core")]
    for name, template, container in containers(objects):
        pod = template["spec"]["securityContext"]
        assert (
            pod["runAsNonRoot"] and pod["runAsUser"] == 65532 and pod["seccompProfile"] == {"type": "RuntimeDefault"}
        ), name
        own = container["securityContext"]
        assert (
            own["readOnlyRootFilesystem"]
            and not own["allowPrivilegeEscalation"]
            and own["capabilities"] == {"drop": ["ALL"]}
        ), name
        assert container["resources"]["requests"] and container["resources"]["limits"]["memory"], name
        assert not any(volume.get("hostPath") for volume in template["spec"].get("volumes", [])), name


def test_only_the_certificate_job_has_a_service_account_token(objects: list[Object]) -> None:
    for name, template in pod_templates(objects).items():
        job = "/certs-init" in name.replace("tetrapod-", "").replace("rel-", "") or name.startswith(
            ("Job/", "CronJob/")
        )
        assert template["spec"]["automountServiceAccountToken"] is job, name
    accounts = {binding["subjects"][0]["name"] for binding in of_kind(objects, "RoleBinding").values()}
    assert all("certs" in account for account in accounts)
    assert not of_kind(objects, "ClusterRole") and not of_kind(objects, "ClusterRoleBinding")
    for role in of_kind(objects, "Role").values():
        assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"create", "get", "update"}
        assert all(rule["resources"] == ["secrets"] for rule in role["rules"])
        assert all("resourceNames" in rule for rule in role["rules"] if rule["verbs"] != ["create"])


def test_mounted_volumes_and_secrets_exist(objects: list[Object]) -> None:
    made = {*of_kind(objects, "Secret"), *GIVEN_ELSEWHERE}
    made |= {certificate["spec"]["secretName"] for certificate in of_kind(objects, "Certificate").values()}
    for job in of_kind(objects, "Job").values():
        args = job["spec"]["template"]["spec"]["containers"][0]["args"]
        prefix = next(arg.removeprefix("--secrets=") for arg in args if arg.startswith("--secrets="))
        made |= {f"{prefix}-{name}" for name in ("ca", "admin", "monitoring", *FOUR, "etcd")}
    for name, template, container in containers(objects):
        volumes = {volume["name"]: volume for volume in template["spec"].get("volumes", [])}
        claims = {"data"} if "/etcd" in name.replace("-etcd", "/etcd") else set()
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        assert mounts <= set(volumes) | claims, name
        for volume in volumes.values():
            named = [volume["secret"]["secretName"]] if "secret" in volume else []
            named += [source["secret"]["name"] for source in volume.get("projected", {}).get("sources", [])]
            assert set(named) <= made, (name, volume)


def test_only_auth_has_the_signing_key(objects: list[Object]) -> None:
    for name, template in pod_templates(objects).items():
        sources = [
            s["secret"] for v in template["spec"].get("volumes", []) for s in v.get("projected", {}).get("sources", [])
        ]
        paths = {item["path"] for source in sources for item in source["items"]}
        assert ("sa.key" in paths) == (bool(paths) and name.endswith("-auth")), name
        assert not any(source["name"].endswith(("-ca",)) for source in sources), name
        named = [v["secret"]["secretName"] for v in template["spec"].get("volumes", []) if "secret" in v]
        assert not any(secret.endswith("-ca") for secret in named), name
        assert not any(secret.endswith("-auth") for secret in named) or name.endswith("-auth"), name


def test_selectors_match_only_their_own_pods(objects: list[Object]) -> None:
    templates = {name: template["metadata"]["labels"] for name, template in pod_templates(objects).items()}
    selectors: dict[str, dict[str, str]] = {}
    for obj in objects:
        match obj["kind"]:
            case "Service":
                component = obj["spec"]["selector"]["app.kubernetes.io/component"]
                selectors[f"Service/{obj['metadata']['name']}"] = obj["spec"]["selector"]
            case "Deployment" | "StatefulSet" | "PodDisruptionBudget":
                component = obj["metadata"]["labels"]["app.kubernetes.io/component"]
                selectors[f"{obj['kind']}/{obj['metadata']['name']}"] = obj["spec"]["selector"]["matchLabels"]
            case "NetworkPolicy":
                component = obj["metadata"]["labels"]["app.kubernetes.io/component"]
                selectors[f"NetworkPolicy/{obj['metadata']['name']}"] = obj["spec"]["podSelector"]["matchLabels"]
            case _:
                continue
        found = [name for name, labels in templates.items() if selectors_match(list(selectors.values())[-1], labels)]
        assert len(found) == 1 and found[0].endswith(f"-{component}"), (list(selectors)[-1], found)


def selectors_match(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def test_only_the_aggregator_accepts_outside_connections(objects: list[Object]) -> None:
    services = {
        name: service
        for name, service in of_kind(objects, "Service").items()
        if service["spec"].get("clusterIP") != "None"
    }
    front = [
        name for name, s in services.items() if s["spec"]["selector"]["app.kubernetes.io/component"] == "aggregator"
    ]
    assert len(front) == 1
    assert all(services[name]["spec"]["type"] == "ClusterIP" for name in services if name not in front)
    for policy in of_kind(objects, "NetworkPolicy").values():
        component = policy["metadata"]["labels"]["app.kubernetes.io/component"]
        open_to_all = any("from" not in rule for rule in policy["spec"].get("ingress", []))
        assert not open_to_all or component == "aggregator"
        peers = [
            p
            for rule in policy["spec"]["ingress"]
            for p in rule.get("from", [])
            if "podSelector" in p and "namespaceSelector" not in p
        ]
        inside = {peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in peers}
        assert inside <= {*FOUR, "etcd", "test"}
        if component in ("etcd", "redis"):
            assert "test" not in inside


def test_upgrades_replace_a_replica_only_when_another_is_ready(objects: list[Object]) -> None:
    for name in FOUR:
        (deployment,) = [d for key, d in of_kind(objects, "Deployment").items() if key.endswith(f"-{name}")]
        assert deployment["spec"]["strategy"] == {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
        }
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
        (delay,) = [
            int(arg.split("=")[1].removesuffix("s"))
            for arg in container["args"]
            if arg.startswith("--shutdown-delay-duration")
        ]
        assert 0 < delay < pod["terminationGracePeriodSeconds"]


def test_the_command_line_accepts_every_argument(objects: list[Object]) -> None:
    seen = set()
    for _, _, container in containers(objects):
        args = [str(arg) for arg in container.get("args", [])]
        if args[:1] not in (["serve"], ["certs"]):
            continue
        seen.add(parsed_command(args))
    assert seen >= set(FOUR)


def test_etcd_peer_names_are_in_their_certificates() -> None:
    objects = render(*settings(etcd__replicaCount=3))
    (etcd,) = of_kind(objects, "StatefulSet").values()
    args = etcd["spec"]["template"]["spec"]["containers"][0]["args"]
    (cluster,) = [arg.removeprefix("--initial-cluster=") for arg in args if arg.startswith("--initial-cluster=")]
    hosts = [member.split("=")[1] for member in cluster.split(",")]
    assert hosts == [f"https://rel-tetrapod-etcd-{n}.rel-tetrapod-etcd-peers.ns.svc:2380" for n in range(3)]
    (job,) = of_kind(objects, "Job").values()
    assert "--etcd-hosts=*.rel-tetrapod-etcd-peers.ns.svc,*.rel-tetrapod-etcd-peers.ns.svc.cluster.local" in str(job)
    (budget,) = [b for name, b in of_kind(objects, "PodDisruptionBudget").items() if name.endswith("-etcd")]
    assert budget["spec"]["maxUnavailable"] == 1


def test_values_of_one_service_override_defaults_even_with_false_and_zero() -> None:
    values = {"defaults__autoscaling__enabled": True, "core__autoscaling__enabled": False, "core__replicaCount": 0}
    objects = render(*settings(**values, defaults__extraArgs=["--v=3"], core__extraArgs=["--v=4"]))
    assert set(of_kind(objects, "HorizontalPodAutoscaler")) == {
        f"rel-tetrapod-{name}" for name in ("aggregator", "extensions", "auth")
    }
    core = of_kind(objects, "Deployment")["rel-tetrapod-core"]
    assert core["spec"]["replicas"] == 0
    assert core["spec"]["template"]["spec"]["containers"][0]["args"][-2:] == ["--v=3", "--v=4"]
    assert "replicas" not in of_kind(objects, "Deployment")["rel-tetrapod-auth"]["spec"]


@pytest.mark.parametrize(
    ("values", "output"),
    [
        ({"core__replicaCont": 1}, "additional properties 'replicaCont' not allowed"),
        ({"core__replicaCount": "two"}, "got string, want integer"),
        ({"etcd__replicaCount": 2}, "value must be one of 1, 3, 5"),
        ({"certificates__mode": "magic"}, "value must be one of 'job', 'cert-manager', 'existing'"),
        ({"aggregator__service__type": "ExternalName"}, "value must be one of"),
        ({"aggregator__service__port": 70000}, "maximum: got 70,000, want 65,535"),
        ({"defaults__shutdownDelayDuration": "soon"}, "does not match pattern"),
        ({"defaults__resources": {"limits": {"memory": "much"}}}, "does not match pattern"),
        ({"core__extraArgs": ["v=3"]}, "does not match pattern"),
        ({"image__digest": "sha256:short"}, "does not match pattern"),
        ({"externalEtcd__endpoints": ["etcd:2379"], "etcd__enabled": False}, "does not match pattern"),
        ({"etcd__enabled": False}, "externalEtcd.endpoints must name the etcd to use"),
        ({"externalEtcd__endpoints": ["https://e:2379"]}, "set etcd.enabled to false"),
        ({"externalRedis__url": "redis://r:1"}, "set redis.enabled to false"),
        ({"redis__enabled": False, "externalRedis__url": "redis://:secret@r:1"}, "put it into a Secret"),
        ({"ingress__enabled": True}, "ingress.host must say"),
        ({"tlsRoute__enabled": True}, "tlsRoute.parentRefs and tlsRoute.hostnames must be given"),
        ({"certificates__mode": "existing"}, "certificates.existingSecrets.aggregator must name a Secret"),
    ],
)
def test_invalid_values_are_rejected_by_name(values: dict[str, object], output: str) -> None:
    done = helm.run("template", "rel", str(CHART), helm.KUBERNETES, *settings(**values))
    assert done.returncode != 0
    assert output in done.stderr


def test_every_value_is_documented_and_in_the_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    documented = set(re.findall(r"^\| `([^`]+)`", (CHART / "README.md").read_text(), re.MULTILINE))
    leaves = set(paths(values))
    missing = {leaf for leaf in leaves if not any(leaf == name or leaf.startswith(f"{name}.") for name in documented)}
    assert not missing
    known = leaves | {".".join(leaf.split(".")[:n]) for leaf in leaves for n in range(1, leaf.count(".") + 1)}
    assert documented <= known, documented - known


def paths(values: Object, prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from paths(value, f"{prefix}{key}.")
        else:
            yield prefix + key
