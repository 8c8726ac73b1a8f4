"""The scheduling of Jobs as groups, behind the feature gate WorkloadWithJob, also of kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.etcd import running_etcd
from support.forms import ETCD, FORMS, STOCK, serving, serving_over
from support.https_client import MERGE, HttpsClient, Reply, causes
from tetrapod.machinery.gvk import Object

ON: Final = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true"
JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
CRON_JOBS: Final = "/apis/batch/v1/namespaces/default/cronjobs"
ROLE: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:job-controller"
BASIC: Final[Object] = {"schedulingPolicy": {"basic": {}}}
GANG: Final[Object] = {
    "schedulingPolicy": {"gang": {"minCount": 2}},
    "disruptionMode": {"all": {}},
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
    "resourceClaims": [{"name": "c", "resourceClaimName": "x"}],
}


def job_spec(scheduling: Object | None, **fields: Any) -> Object:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec = {"template": template, "parallelism": 2, **fields}
    return spec if scheduling is None else {**spec, "scheduling": scheduling}


def job(name: str, scheduling: Object | None, **fields: Any) -> Object:
    return {"metadata": {"name": name}, "spec": job_spec(scheduling, **fields)}


def cron_job(name: str, scheduling: Object | None) -> Object:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job_spec(scheduling)}}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("data"), ON) as client:
        yield client


def rejected(client: HttpsClient, scheduling: Object, **fields: Any) -> list[str]:
    return causes(client.call("POST", JOBS, job("invalid", scheduling, **fields)))


def changed(client: HttpsClient, name: str, scheduling: Any) -> Reply:
    return client.call("PATCH", f"{JOBS}/{name}", {"spec": {"scheduling": scheduling}}, MERGE)


def test_jobs_and_cron_jobs_store_their_scheduling(client: HttpsClient) -> None:
    reply = client.call("POST", JOBS, job("gang", GANG))
    assert (reply.status, reply.body["spec"]["scheduling"]) == (201, GANG)
    reply = client.call("POST", CRON_JOBS, cron_job("gang", GANG))
    assert (reply.status, reply.body["spec"]["jobTemplate"]["spec"]["scheduling"]) == (201, GANG)
    assert client.call("POST", JOBS, job("defaulted", {"schedulingPolicy": {"gang": {}}})).status == 201
    rules = client.call("GET", ROLE).body["rules"]
    assert [rule["resources"] for rule in rules if rule["apiGroups"] == ["scheduling.k8s.io"]] == [
        ["podgroups", "workloads"]
    ]


def test_policies_are_validated(client: HttpsClient) -> None:
    path = "spec.scheduling.schedulingPolicy"
    assert rejected(client, {"schedulingPolicy": {}}) == [
        f'{path}: Invalid value: "": must specify one of: `basic`, `gang`'
    ]
    assert rejected(client, {"schedulingPolicy": {"basic": {}, "gang": {}}}) == [
        f'{path}: Invalid value: "{{basic, gang}}": must specify exactly one of: `basic`, `gang`'
    ]
    assert rejected(client, {"schedulingPolicy": {"gang": {"minCount": 0}}}) == [
        f"{path}.gang.minCount: Invalid value: 0: must be greater than or equal to 1"
    ]
    assert rejected(client, {"schedulingPolicy": {"gang": {"minCount": 3}}}) == [
        f"{path}.gang.minCount: Invalid value: 3: must not be greater than parallelism (2)"
    ]


@pytest.mark.parametrize("policy", [{}, BASIC])
def test_only_gangs_are_disrupted_together(client: HttpsClient, policy: Object) -> None:
    assert rejected(client, {**policy, "disruptionMode": {"all": {}}}) == [
        'spec.scheduling.disruptionMode: Invalid value: "": the disruptionMode `all` is not supported with the Basic '
        "scheduling policy"
    ]


def test_constraints_and_claims_are_validated(client: HttpsClient) -> None:
    claims = [{"name": "c"}, {"name": "c", "resourceClaimName": "x"}]
    constraints = {"topology": [{"key": "a"}, {"key": "b"}]}
    assert rejected(client, {**BASIC, "schedulingConstraints": constraints, "resourceClaims": claims}) == [
        "spec.scheduling.schedulingConstraints.topology: Too many: 2: must have at most 1 item",
        'spec.scheduling.resourceClaims[1]: Duplicate value: {"name":"c","resourceClaimName":"x"}',
        'spec.scheduling.resourceClaims[0]: Invalid value: "": must specify one of: `resourceClaimName`, '
        "`resourceClaimTemplateName`",
    ]


def test_only_the_size_of_a_gang_changes(client: HttpsClient) -> None:
    path = "spec.scheduling"
    assert client.call("POST", JOBS, job("fixed", GANG)).status == 201
    assert client.call("POST", JOBS, job("bare", None)).status == 201
    assert changed(client, "fixed", {"schedulingPolicy": {"gang": {"minCount": 1}}}).status == 200
    immutable = "field is immutable"
    assert causes(changed(client, "fixed", {"disruptionMode": {"all": None, "single": {}}})) == [
        f"{path}.disruptionMode: Invalid value: null: {immutable}"
    ]
    assert causes(changed(client, "fixed", {"schedulingConstraints": None, "resourceClaims": None})) == [
        f"{path}.schedulingConstraints: Invalid value: null: {immutable}",
        f"{path}.resourceClaims: Invalid value: null: {immutable}",
    ]
    switched = causes(
        changed(client, "fixed", {"schedulingPolicy": {"gang": None, "basic": {}}, "disruptionMode": {"all": {}}})
    )
    assert switched == [
        f'{path}.disruptionMode: Invalid value: "": the disruptionMode `all` is not supported with the Basic '
        "scheduling policy",
        f"{path}.schedulingPolicy: Invalid value: null: the basic/gang policy variant is immutable after creation; "
        "only schedulingPolicy.gang.minCount may be updated",
    ]
    assert causes(changed(client, "fixed", None)) == [f"{path}: Invalid value: null: field cannot be cleared once set"]
    assert causes(changed(client, "bare", BASIC)) == [f"{path}: Invalid value: null: field cannot be set once created"]
    assert changed(client, "bare", None).status == 200


def test_the_template_of_a_cron_job_keeps_the_rules_of_jobs(client: HttpsClient) -> None:
    assert client.call("POST", CRON_JOBS, cron_job("bare", None)).status == 201
    patch = {"spec": {"jobTemplate": {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 3}}}}}}}
    path = "spec.jobTemplate.spec.scheduling"
    found = causes(client.call("PATCH", f"{CRON_JOBS}/bare", patch, MERGE))
    assert found == [
        f"{path}.schedulingPolicy.gang.minCount: Invalid value: 3: must not be greater than parallelism (2)",
        f"{path}: Invalid value: null: field cannot be set once created",
    ]


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_without_the_gate_the_field_is_dropped_unless_it_is_stored(form: str, tmp_path: Path) -> None:
    with running_etcd(tmp_path / "etcd") as etcd:
        with serving_over(etcd, form, tmp_path / "first", ON) as client:
            assert client.call("POST", JOBS, job("gang", GANG)).status == 201
        with serving_over(etcd, form, tmp_path / "second") as client:
            kept = client.call("PATCH", f"{JOBS}/gang", {"metadata": {"labels": {"a": "b"}}}, MERGE)
            assert (kept.status, kept.body["spec"]["scheduling"]) == (200, GANG)
            assert causes(changed(client, "gang", {"schedulingPolicy": {"gang": {"minCount": 1}}})) == [
                "spec.scheduling: Forbidden"
            ]
            assert "scheduling" not in client.call("POST", JOBS, job("bare", GANG)).body["spec"]
            reply = client.call("POST", CRON_JOBS, cron_job("bare", GANG))
            assert "scheduling" not in reply.body["spec"]["jobTemplate"]["spec"]
