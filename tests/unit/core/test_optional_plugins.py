"""Tests of admission plugins that are disabled unless they are enabled by name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tetrapod.core.admission.antiaffinity_and_external_ips import (
    DenyServiceExternalIPs,
    LimitPodHardAntiAffinityTopology,
)
from tetrapod.core.admission.images import AlwaysPullImages
from tetrapod.core.admission.tolerations import ExtendedResourceToleration
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.admission.plugins.always_deny import AlwaysDeny
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo


def written(obj: Any, old: Any = None, resource: str = "pods", subresource: str = "") -> Attributes:
    return Attributes(
        operation="CREATE" if old is None else "UPDATE",
        kind=GroupVersionKind("", "v1", "Any"),
        resource=GroupVersionResource("", "v1", resource),
        subresource=subresource,
        namespace="default",
        name="x",
        object=obj,
        old_object=old,
        options={},
        dry_run=False,
        user=UserInfo("somebody"),
    )


def pod(*images: str, policy: str = "IfNotPresent", **spec: Any) -> Any:
    return {"spec": {"containers": [{"name": i, "image": i, "imagePullPolicy": policy} for i in images], **spec}}


def test_images_are_always_pulled_and_nothing_may_change_that() -> None:
    plugin, new = (
        AlwaysPullImages(),
        pod("a", "b", volumes=[{"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}]),
    )
    asyncio.run(plugin.admit(written(new)))
    assert [c["imagePullPolicy"] for c in new["spec"]["containers"]] == ["Always", "Always"]
    assert new["spec"]["volumes"][0]["image"]["pullPolicy"] == "Always"
    asyncio.run(plugin.validate(written(new)))
    with pytest.raises(
        StatusError, match=r'pods "x" is forbidden: spec.containers\[0\].imagePullPolicy: Unsupported value: "Never"'
    ):
        asyncio.run(plugin.validate(written(pod("a", policy="Never"))))


def test_updates_without_a_new_image_are_not_changed() -> None:
    plugin = AlwaysPullImages()
    assert not plugin.handles(written(pod("a"), subresource="ephemeralcontainers"))
    same, changed = pod("a"), pod("a", "c")
    for new in (same, changed):
        update = written(new, pod("a", "b"))
        assert plugin.handles(update)
        asyncio.run(plugin.admit(update))
    asyncio.run(plugin.validate(written(same, pod("a", "b"))))
    assert [c["imagePullPolicy"] for c in same["spec"]["containers"]] == ["IfNotPresent"]
    assert [c["imagePullPolicy"] for c in changed["spec"]["containers"]] == ["Always", "Always"]


@pytest.mark.parametrize(
    ("keys", "rejected"), [(["kubernetes.io/hostname"], ""), (["kubernetes.io/hostname", "zone"], "zone"), ([], "")]
)
def test_required_anti_affinity_is_limited_to_the_hostname_topology(keys: list[str], rejected: str) -> None:
    terms = [{"topologyKey": key} for key in keys]
    asked = written(pod("a", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}))
    if not rejected:
        asyncio.run(LimitPodHardAntiAffinityTopology().validate(asked))
        return
    with pytest.raises(StatusError, match=f"has TopologyKey {rejected} but only key kubernetes.io/hostname is allowed"):
        asyncio.run(LimitPodHardAntiAffinityTopology().validate(asked))


@pytest.mark.parametrize(
    ("new", "old", "allowed"),
    [([], None, True), (["1.2.3.4"], None, False), (["1.2.3.4"], ["5.6.7.8", "1.2.3.4"], True)],
)
def test_external_addresses_are_not_taken_again(new: list[str], old: list[str] | None, allowed: bool) -> None:
    asked = written({"spec": {"externalIPs": new}}, None if old is None else {"spec": {"externalIPs": old}}, "services")
    if allowed:
        asyncio.run(DenyServiceExternalIPs().validate(asked))
        return
    with pytest.raises(StatusError, match="Use of external IPs is denied by admission control"):
        asyncio.run(DenyServiceExternalIPs().validate(asked))


def test_pods_with_extended_resources_tolerate_their_taints() -> None:
    resources = {"requests": {"example.com/gpu": "1", "cpu": "1", "a.b/c": "1"}}
    given = [
        {"key": "a.b/c", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "example.com/gpu", "operator": "Exists"},
    ]
    new = {"spec": {"containers": [{"name": "c", "resources": resources}], "tolerations": given}}
    asyncio.run(ExtendedResourceToleration().admit(written(new)))
    assert new["spec"]["tolerations"] == [
        *given,
        {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_always_deny_rejects_everything() -> None:
    message = r'^pods "x" is forbidden: admission control is denying all modifications$'
    for asked in (AlwaysDeny().admit, AlwaysDeny().validate):
        with pytest.raises(StatusError, match=message):
            asyncio.run(asked(written(pod("a"))))
