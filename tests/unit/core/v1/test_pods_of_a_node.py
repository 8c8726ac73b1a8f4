"""Field selectors on spec.nodeName, which the watches of all kubelets have."""

from __future__ import annotations

from collections import defaultdict

import orjson
import pytest

from tetrapod.core.v1.pods.definition import definition
from tetrapod.core.v1.pods.strategy import PodStrategy
from tetrapod.generic.registry.predicate import select
from tetrapod.generic.storage.cacher.entry import StoredEntry

PODS = definition(defaultdict(PodStrategy))


def _pod(node: str | None, phase: str = "Running") -> StoredEntry:
    spec = {} if node is None else {"nodeName": node}
    obj = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "7"},
        "spec": spec,
        "status": {"phase": phase},
    }
    return StoredEntry.from_served("ns/web", orjson.dumps(obj), 7)


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        ("spec.nodeName=a", [True, False, False]),
        ("spec.nodeName==a,status.phase=Running", [True, False, False]),
        ("spec.nodeName=a,status.phase=Failed", [False, False, False]),
        ("spec.nodeName!=a", [False, True, True]),
        ("spec.nodeName=", [False, False, True]),
        ("spec.nodeName=a,spec.nodeName=b", [False, False, False]),
        ("spec.nodeName=b,metadata.name=web", [False, True, False]),
        ("spec.nodeName=b,metadata.name=other", [False, False, False]),
    ],
)
def test_pods_are_selected_by_node(selector: str, matching: list[bool]) -> None:
    matches = select(PODS, "", "", selector, "v1").predicate.matcher
    pods = [_pod("a"), _pod("b"), _pod(None)]
    assert [matches(pod) for pod in pods] == matching
    assert [matches(pod) for pod in pods] == matching  # from the values that are kept


def test_a_pod_is_parsed_once_for_the_watches_of_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = _pod("node-3")
    assert pod.indexed is None
    assert select(PODS, "", "", "spec.nodeName=node-3", "v1").predicate.matcher(pod)
    pod.drop_derived_data()
    monkeypatch.setattr(StoredEntry, "peek", None)
    matching = [n for n in range(9) if select(PODS, "", "", f"spec.nodeName=node-{n}", "v1").predicate.matcher(pod)]
    assert matching == [3]
