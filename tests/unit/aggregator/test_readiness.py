"""Tests of the readiness that a starting server reports."""

from __future__ import annotations

from typing import cast

import pytest

from tetrapod.aggregator.autoregister import AutoRegistration
from tetrapod.aggregator.routing import Records
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersion
from unit.aggregator.objects import FakeClient, api_service


async def test_a_local_group_counts_as_registered_once_it_is_available() -> None:
    records = Records()
    registration = AutoRegistration(cast(Client, FakeClient()), records)
    registration.want(GroupVersion("apps", "v1"), (1, 1), always=False)
    with pytest.raises(RuntimeError, match=r"missing APIService: \[v1.apps\]"):
        await registration.check()
    new = api_service("apps")
    registration.changed(None, new)
    with pytest.raises(RuntimeError):
        await registration.check()
    registration.changed(new, {**new, "status": {"conditions": [{"type": "Available", "status": "True"}]}})
    await registration.check()
    await registration.completed()
