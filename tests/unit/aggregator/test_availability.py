"""Which events queue an APIService for a check of its availability."""

from __future__ import annotations

import copy
from typing import Any

from tetrapod.aggregator.availability import AvailabilityController
from unit.aggregator.objects import FakeClient, FakeCluster, api_service


async def test_every_change_queues_an_api_service_and_an_unchanged_one_is_ignored() -> None:
    """Upstream queues at every update, also at those of the controller itself (kube-aggregator, updateAPIService)."""
    parts: Any = (FakeClient(), None, FakeCluster(), None)
    controller = AvailabilityController(*parts)
    external = api_service("g", service={})
    external["metadata"]["resourceVersion"] = "1"
    controller.changed(None, external)
    assert (len(controller.remote), len(controller.local)) == (1, 0)

    controller = AvailabilityController(*parts)
    controller.changed(external, copy.deepcopy(external))
    assert len(controller.remote) == 0
    changed = copy.deepcopy(external)
    changed["metadata"]["resourceVersion"] = "2"
    changed["status"] = {"conditions": []}
    controller.changed(external, changed)
    assert len(controller.remote) == 1
