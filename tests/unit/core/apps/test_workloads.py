"""Tests of the workloads in group apps: what is rejected, which fields are immutable, and which changes increment the
generation.
"""

import pytest

from tetrapod.core.apps import deployments, resources
from tetrapod.core.podspec import workloads
from tetrapod.core.validation import rolling
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object


def deployment(**spec: object) -> Object:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always"}]},
    }
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    base = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": template,
        "strategy": update,
        "progressDeadlineSeconds": 600,
    }
    return {"metadata": {"name": "d"}, "spec": {**base, **spec}}


def fields(obj: Object) -> list[str]:
    return [f"{e.field} {e.detail}" for e in deployments.validate(obj) if ".template.spec." not in e.field]


def test_a_selector_is_needed_and_must_select_the_template() -> None:
    assert fields(deployment(selector=None))[0].startswith("spec.selector")
    assert fields(deployment(selector={"matchLabels": {"x": "y"}})) == [
        f"spec.template.metadata.labels {workloads.MISMATCH}"
    ]
    assert fields(deployment(selector={})) == ["spec.selector empty selector is invalid for deployment"]


def test_a_rolling_update_needs_a_surge_or_unavailable_pods() -> None:
    stuck = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}
    assert fields(deployment(strategy=stuck)) == [
        "spec.strategy.rollingUpdate.maxUnavailable may not be 0 when `maxSurge` is 0"
    ]


def test_an_unknown_strategy_prints_as_the_internal_struct() -> None:
    (error,) = [e for e in deployments.validate(deployment(strategy={"type": "Blue"})) if e.field == "spec.strategy"]
    assert (
        error.body()
        == 'Unsupported value: {"Type":"Blue","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"'
    )


def test_the_selector_is_immutable() -> None:
    new = deployment(selector={"matchLabels": {"a": "b", "c": "d"}})
    (error,) = workloads.validate_selector_update(new, deployment())
    assert str(error) == 'spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable'


LONG = "9" * 5000
INT64 = 1 << 63


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((3, 3), ("50%", 50), ("0%", 0), ("5", 5), ("%", 0), (None, 0)),
        *((LONG, INT64 - 1), (f"-{LONG}", -INT64), (f"{LONG}%", INT64 - 1)),
    ],
)
def test_amounts_are_read_as_numbers_or_percentages(value: int | str | None, number: int) -> None:
    assert rolling.number(value) == number


def test_annotations_begin_a_generation_of_a_deployment_and_labels_do_not() -> None:
    strategy = next(d.strategy for d in resources.definitions() if d.resource == "deployments")
    old = {"metadata": {"name": "d"}, "spec": {}}
    assert strategy.changes_generation({"metadata": {"annotations": {"a": "b"}}, "spec": {}}, old)
    assert not strategy.changes_generation({"metadata": {"labels": {"a": "b"}}, "spec": {}}, old)


def test_a_daemon_set_counts_changes_of_its_template() -> None:
    strategy = next(d.strategy for d in resources.definitions() if d.resource == "daemonsets")
    old: Object = {"metadata": {}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
    strategy.prepare_for_create(Context(), old)
    new: Object = {"metadata": {}, "spec": {"template": {"metadata": {"labels": {"a": "c"}}}}}
    strategy.prepare_for_update(Context(), new, old)
    assert new["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": "2"}


def test_a_status_counts_no_more_than_there_is() -> None:
    status = {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3}
    texts = [
        f"{e.field} {e.detail}"
        for e in deployments.validate_status({"status": status}, {"status": {"collisionCount": 1}})
    ]
    assert texts == [
        "status.readyReplicas cannot be greater than status.replicas",
        "status.availableReplicas cannot be greater than status.replicas",
        "status.availableReplicas cannot be greater than readyReplicas",
        "status.collisionCount cannot be decremented",
    ]
