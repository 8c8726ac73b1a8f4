"""Tests of the admission plugin PodSecurity: rejections, warnings and audit annotations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tetrapod.core.admission.pod_security import Exemptions, PodSecurity
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo

PREFIX = "pod-security.kubernetes.io/"
HOST_PID = "host namespaces (hostPID=true)"
KINDS = {"pods": "Pod", "namespaces": "Namespace", "deployments": "Deployment"}


class Storages:
    """One namespace, `n`, with these labels and pods."""

    def __init__(self, labels: dict[str, str], pods: list[Object]) -> None:
        self.namespace = {"metadata": {"name": "n", "labels": labels}}
        self.pods = pods

    def resource(self, config: StorageConfig) -> Any:
        return self

    def cached(self) -> None:
        """Return None, so that the plugin reads by `get` and `list`."""

    async def get(self, key: str, resource_version: str = "") -> Any:
        return SimpleNamespace(peek=lambda: self.namespace) if key == "n" else None

    async def list(self, query: ListQuery) -> Any:
        assert query.prefix == "n/"
        return SimpleNamespace(entries=[SimpleNamespace(peek=lambda pod=pod: pod) for pod in self.pods])


def asked(**modes: str) -> dict[str, str]:
    return {PREFIX + mode.replace("_", "-"): value for mode, value in modes.items()}


def pod(name: str = "p", image: str = "x", **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": image}], **spec}}


def request(
    obj: Object, old: Object | None = None, resource: str = "pods", subresource: str = "", user: str = "u"
) -> Attributes:
    group = "apps" if resource == "deployments" else ""
    return Attributes(
        operation="UPDATE" if old else "CREATE",
        kind=GroupVersionKind(group, "v1", KINDS[resource]),
        resource=GroupVersionResource(group, "v1", resource),
        subresource=subresource,
        namespace="n",
        name=obj["metadata"]["name"],
        object=obj,
        old_object=old,
        options={},
        dry_run=False,
        user=UserInfo(user),
    )


async def admitted(
    attributes: Attributes, labels: dict[str, str], *pods: Object, **exempt: frozenset[str]
) -> Attributes:
    plugin = PodSecurity(cast(StorageFactory, Storages(labels, list(pods))), exempt=Exemptions(**exempt))
    if plugin.handles(attributes):
        await plugin.validate(attributes)
    return attributes


async def test_a_rejection_names_the_policy_and_has_no_warnings() -> None:
    attributes = request(pod(hostPID=True))
    with pytest.raises(StatusError) as rejected:
        await admitted(attributes, asked(enforce="baseline", warn="restricted", audit="baseline"))
    assert rejected.value.message == f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {HOST_PID}'
    assert rejected.value.code == 403
    assert attributes.warnings == []
    assert attributes.annotations == {
        f"{PREFIX}enforce-policy": "baseline:latest",
        f"{PREFIX}audit-violations": f'would violate PodSecurity "baseline:latest": {HOST_PID}',
    }


async def test_violations_that_are_not_enforced_cause_warnings() -> None:
    done = await admitted(request(pod(hostPID=True)), asked(warn="baseline", warn_version="v1.20"))
    assert done.warnings == [f'would violate PodSecurity "baseline:v1.20": {HOST_PID}']
    assert done.annotations == {f"{PREFIX}enforce-policy": "privileged:latest"}


async def test_a_namespace_without_labels_allows_all_pods() -> None:
    done = await admitted(request(pod(hostPID=True)), {"kubernetes.io/metadata.name": "n"})
    assert (done.warnings, done.annotations) == ([], {f"{PREFIX}enforce-policy": "privileged:latest"})


async def test_labels_that_are_wrong_are_enforced_strictly_and_reported() -> None:
    attributes = request(pod())
    with pytest.raises(StatusError, match="restricted:latest"):
        await admitted(attributes, asked(enforce="severe"))
    assert attributes.annotations[f"{PREFIX}error"].startswith(
        f"Failed to parse policy: metadata.labels[{PREFIX}enforce]: Invalid value"
    )


async def test_only_significant_updates_are_evaluated() -> None:
    labels, old = asked(enforce="baseline"), pod(hostPID=True)
    await admitted(request(pod(hostPID=True, activeDeadlineSeconds=1), old), labels)
    await admitted(request(pod(hostPID=True, image="y"), old, subresource="status"), labels)
    for subresource in ("", "ephemeralcontainers", "resize"):
        with pytest.raises(StatusError):
            await admitted(request(pod(hostPID=True, image="y"), old, subresource=subresource), labels)


async def test_workloads_get_warnings_and_are_never_rejected() -> None:
    deployment = {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"hostPID": True}}}}
    done = await admitted(request(deployment, resource="deployments"), asked(enforce="baseline", warn="baseline"))
    assert done.warnings == [f'would violate PodSecurity "baseline:latest": {HOST_PID}']
    assert done.annotations == {}
    scaled = await admitted(request(deployment, deployment, "deployments", "scale"), asked(warn="baseline"))
    assert scaled.warnings == []


@pytest.mark.parametrize(
    ("exempt", "reason"),
    [
        ({"namespaces": frozenset({"n"})}, "namespace"),
        ({"usernames": frozenset({"u"})}, "user"),
        ({"runtime_classes": frozenset({"kata"})}, "runtimeClass"),
    ],
)
async def test_exemptions_are_recorded(exempt: dict[str, frozenset[str]], reason: str) -> None:
    done = await admitted(request(pod(hostPID=True, runtimeClassName="kata")), asked(enforce="baseline"), **exempt)
    assert done.annotations == {f"{PREFIX}exempt": reason}


def namespace(**modes: str) -> Object:
    return {"metadata": {"name": "n", "labels": asked(**modes)}}


async def test_labels_of_a_namespace_are_validated_where_they_changed() -> None:
    bad = namespace(enforce="severe")
    with pytest.raises(StatusError) as rejected:
        await admitted(request(bad, resource="namespaces"), {})
    assert rejected.value.code == 422
    why = f'metadata.labels[{PREFIX}enforce]: Invalid value: "severe": must be one of privileged, baseline, restricted'
    assert rejected.value.message == f'Namespace "n" is invalid: {why}'
    with pytest.raises(StatusError):
        await admitted(request(bad, namespace(), "namespaces"), {})
    await admitted(request(bad, bad, "namespaces"), {})


async def test_a_stricter_namespace_warns_of_existing_pods() -> None:
    pods = [pod("plain1"), pod("host", hostPID=True), pod("plain0"), pod("plain2")]
    done = await admitted(
        request(namespace(enforce="restricted"), namespace(enforce="baseline"), "namespaces"), {}, *pods
    )
    common = "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile"
    assert done.warnings == [
        'existing pods in namespace "n" violate the new PodSecurity enforce level "restricted:latest"',
        f"host: host namespaces, {common}",
        f"plain0 (and 2 other pods): {common}",
    ]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"enforce": "baseline"}, {"enforce": "restricted"}),
        ({"enforce": "restricted"}, {"enforce": "restricted"}),
        ({"enforce": "privileged", "enforce_version": "v1.3"}, {"enforce": "restricted"}),
        ({"warn": "restricted"}, {}),
    ],
)
async def test_an_equally_strict_namespace_does_not_warn(new: dict[str, str], old: dict[str, str]) -> None:
    done = await admitted(request(namespace(**new), namespace(**old), "namespaces"), {}, pod(hostPID=True))
    assert done.warnings == []


async def test_labels_of_an_exempt_namespace_are_reported_to_be_ignored() -> None:
    exempt = frozenset({"n"})
    done = await admitted(
        request(namespace(enforce="baseline", warn="restricted"), resource="namespaces"), {}, namespaces=exempt
    )
    ignored = "the policy (enforce=baseline:latest, warn=restricted:latest) will be ignored"
    assert done.warnings == [f'namespace "n" is exempt from Pod Security, and {ignored}']
