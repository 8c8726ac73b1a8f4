"""Tests of the conditions that report why a namespace is still terminating."""

from __future__ import annotations

from tetrapod.core.controllers.discovered import Discovered
from tetrapod.core.controllers.namespaces import DeletionOutcome
from tetrapod.machinery.gvk import Object


def _conditions(stale: tuple[str, ...]) -> dict[str, Object]:
    outcome = DeletionOutcome(Discovered((), stale))
    outcome.remaining["configmaps."] = 1
    return {condition["type"]: condition for condition in outcome.merged([])}


def test_stale_group_versions_are_reported_as_discovery_failure() -> None:
    condition = _conditions(("metrics.k8s.io/v1beta1", "example.com/v1"))["NamespaceDeletionDiscoveryFailure"]
    assert (condition["status"], condition["reason"]) == ("True", "DiscoveryFailed")
    assert condition["message"] == (
        "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: "
        "example.com/v1: stale GroupVersion discovery: example.com/v1, "
        "metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1"
    )


def test_complete_discovery_is_reported_as_success() -> None:
    condition = _conditions(())["NamespaceDeletionDiscoveryFailure"]
    assert (condition["status"], condition["reason"]) == ("False", "ResourcesDiscovered")
