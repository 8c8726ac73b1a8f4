"""Tests of the detection of webhooks that would block the control plane if they were unavailable."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.controllers.webhook_hazards import hazards


def webhook(*resources: str, groups: tuple[str, ...] = ("*",), **more: Any) -> Any:
    rules = [{"apiGroups": list(groups), "apiVersions": ["*"], "operations": ["*"], "resources": list(resources)}]
    return {"name": "w.example.com", "rules": rules, "failurePolicy": "Fail", **more}


def found(given: Any) -> list[str]:
    return hazards(given, lambda namespace: {"kubernetes.io/metadata.name": namespace})


OTHERS = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kube-node-lease"]}
    ]
}
IN_CLUSTER: dict[str, Any] = {"clientConfig": {"service": {"namespace": "hooks", "name": "w"}}}


def test_a_webhook_for_all_resources_is_a_hazard() -> None:
    descriptions = found(webhook("*", **IN_CLUSTER))
    assert descriptions[0] == "leases.coordination.k8s.io in kube-system (leader election stops)"
    assert "pods in hooks (its own server cannot be started again)" in descriptions
    assert len(descriptions) == 7


@pytest.mark.parametrize(
    "harmless",
    [
        webhook("*", failurePolicy="Ignore"),
        webhook("*", matchConditions=[{"name": "a", "expression": "false"}]),
        webhook("*", objectSelector={"matchLabels": {"a": "b"}}),
        webhook("leases", namespaceSelector=OTHERS),
        webhook("deployments", groups=("apps",)),
        webhook("nodes/status"),
        webhook("pods"),  # its server is elsewhere
        webhook("pods", **IN_CLUSTER, namespaceSelector={"matchLabels": {"checked": "yes"}}),
    ],
)
def test_a_webhook_that_excludes_critical_resources_is_no_hazard(harmless: Any) -> None:
    assert found(harmless) == []


def test_a_selector_of_namespaces_does_not_spare_what_is_in_none() -> None:
    assert found(webhook("nodes", namespaceSelector=OTHERS)) == [
        "nodes (kubelets cannot report the status of their nodes)"
    ]
