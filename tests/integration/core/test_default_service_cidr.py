"""The default ServiceCIDR follows --service-cluster-ip-range as far as it may change. Other changes are reported.

The cases are those of upstream's TestServiceCIDRMigrationScenarios.
"""

from __future__ import annotations

import pytest

from integration.core.conftest import Core
from integration.core.test_allocators import EVENTS, cidr
from integration.core.test_controllers import CIDRS
from tetrapod.core.bootstrap.default_service_cidr import DefaultServiceCIDR
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

V4, BIG_V4, V6, BIG_V6 = "10.0.0.0/29", "10.1.0.0/16", "2001:db8:1::/125", "2001:db8:2::/112"


async def default(core: Core) -> Object:
    return await core.client.get(CIDRS, "", "kubernetes")


async def notes(core: Core) -> list[tuple[str, str]]:
    """Return the reasons and notes of all events about the default ServiceCIDR."""
    events = (await core.client.list(EVENTS))["items"]
    return [(event["reason"], event["note"]) for event in events if event["regarding"]["name"] == "kubernetes"]


@pytest.mark.parametrize("networks", [[V4], [V6], [V4, V6], [V6, V4]])
async def test_missing_one_is_created_and_ready(core: Core, networks: list[str]) -> None:
    controller = DefaultServiceCIDR(core.client, networks)
    await controller.sync()
    created = await default(core)
    assert created["spec"]["cidrs"] == networks
    condition = created["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    assert condition["message"] == "Kubernetes default Service CIDR is ready"
    await controller.sync()
    assert (await default(core))["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    await core.client.delete(CIDRS, "", "kubernetes")
    await controller.sync()
    assert (await default(core))["spec"]["cidrs"] == networks


@pytest.mark.parametrize(("before", "after"), [([V4], [V4, BIG_V6]), ([V6], [V6, BIG_V4])])
async def test_secondary_network_is_added(core: Core, before: list[str], after: list[str]) -> None:
    await DefaultServiceCIDR(core.client, before).sync()
    await DefaultServiceCIDR(core.client, after).sync()
    assert (await default(core))["spec"]["cidrs"] == after
    assert not await notes(core)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([V4, V6], [V6, V4]),
        ([V6, V4], [V4, V6]),
        ([V4, V6], [V4]),
        ([V4, V6], [V6]),
        ([V4], [V6]),
        ([V6], [V4]),
        ([V4], [BIG_V6, V4]),
        ([V6], [BIG_V4, V6]),
    ],
)
async def test_other_differences_are_reported_once(core: Core, before: list[str], after: list[str]) -> None:
    await DefaultServiceCIDR(core.client, before).sync()
    controller = DefaultServiceCIDR(core.client, after)
    await controller.sync()
    await controller.sync()
    assert (await default(core))["spec"]["cidrs"] == before
    note = (
        f"The default ServiceCIDR [{' '.join(before)}] does not match the controller flag configurations "
        f"[{' '.join(after)}]"
    )
    assert await notes(core) == [("KubernetesDefaultServiceCIDRInconsistent", note)]


async def test_condition_of_another_component_is_kept_and_reported(core: Core) -> None:
    await cidr(core, "kubernetes", V4, ready=False)
    controller = DefaultServiceCIDR(core.client, [V4])
    await core.client.patch(
        CIDRS,
        "",
        "kubernetes",
        {"status": {"conditions": [{**(await default(core))["status"]["conditions"][0], "reason": "Odd"}]}},
        subresource="status",
    )
    await controller.sync()
    assert (await default(core))["status"]["conditions"][0]["status"] == "False"
    assert [reason for reason, _ in await notes(core)] == ["Odd"]


async def test_a_service_cidr_that_is_being_deleted_is_not_changed(core: Core) -> None:
    body = {"metadata": {"name": "kubernetes", "finalizers": ["example.com/x"]}, "spec": {"cidrs": [BIG_V4]}}
    await core.client.create(CIDRS, "", body)
    await core.client.delete(CIDRS, "", "kubernetes")
    await DefaultServiceCIDR(core.client, [V4]).sync()
    assert (await default(core))["spec"]["cidrs"] == [BIG_V4]
    assert not await notes(core)


async def test_upgrade_that_is_rejected_is_reported(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    await DefaultServiceCIDR(core.client, [V4]).sync()

    async def reject(*_: object) -> Object:
        raise StatusError(403, "Forbidden", "no")

    monkeypatch.setattr(core.client, "update", reject)
    await DefaultServiceCIDR(core.client, [V4, V6]).sync()
    note = f"The default ServiceCIDR can not be upgraded from {V4} to dual stack [{V4} {V6}] : no"
    assert await notes(core) == [("KubernetesDefaultServiceCIDRError", note)]
