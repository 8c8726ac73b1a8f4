"""Updates of pods/status."""

from __future__ import annotations

import pytest

from integration.core.conftest import NS, Core, v1


@pytest.mark.parametrize("statuses", [[], None], ids=["empty", "absent"])
async def test_only_an_empty_list_clears_claim_statuses(core: Core, statuses: list[object] | None) -> None:
    """An old kubelet sends a status without the fields that it does not know."""
    pod = await core.pod("p", resourceClaims=[{"name": "c", "resourceClaimName": "claim"}])
    stored = [{"name": "c", "resourceClaimName": "claim"}]
    pod["status"]["resourceClaimStatuses"] = stored
    pod = await core.client.update(v1("pods"), NS, pod, subresource="status")
    assert pod["status"]["resourceClaimStatuses"] == stored
    pod["status"]["resourceClaimStatuses"] = statuses
    pod = await core.client.update(v1("pods"), NS, pod, subresource="status")
    assert pod["status"].get("resourceClaimStatuses") == (None if statuses == [] else stored)
