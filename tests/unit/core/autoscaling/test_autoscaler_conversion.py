"""Tests of autoscaler conversion to v1 and back: fields that v1 does not have are kept in annotations."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tetrapod.core.autoscaling.horizontal_pod_autoscalers.conversion import (
    BEHAVIOR,
    METRICS,
    convert_autoscaler,
    default_autoscaler_v1,
    without_v1_annotations,
)
from tetrapod.machinery.gvk import Object

_amounts = st.sampled_from(["1", "100m", "1Gi"])
_targets = st.one_of(
    st.builds(lambda v: {"type": "AverageValue", "averageValue": v}, _amounts),
    st.builds(lambda v: {"type": "Utilization", "averageUtilization": v}, st.integers(1, 100)),
)
_metrics = st.one_of(
    st.builds(
        lambda name, target: {"type": "Resource", "resource": {"name": name, "target": target}},
        st.just("memory"),
        _targets,
    ),
    st.builds(
        lambda target: {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "c", "target": target},
        },
        _targets,
    ),
    st.builds(
        lambda v: {
            "type": "Pods",
            "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": v}},
        },
        _amounts,
    ),
    st.builds(
        lambda v: {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": v}}},
        _amounts,
    ),
)


def autoscaler(metrics: list[Any], **spec: Any) -> Object:
    return {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "h", "annotations": {"mine": "kept"}},
        "spec": {"maxReplicas": 3, "metrics": metrics, **spec},
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }


@given(st.lists(_metrics, min_size=1, max_size=4))
def test_metrics_survive_a_round_trip(metrics: list[Any]) -> None:
    obj = autoscaler(metrics)
    assert convert_autoscaler(convert_autoscaler(obj, "v1"), "v2") == obj


def test_the_cpu_target_moves_to_the_end() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    memory = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    }
    back = convert_autoscaler(convert_autoscaler(autoscaler([cpu, memory]), "v1"), "v2")
    assert back["spec"]["metrics"] == [memory, cpu]


def test_behavior_is_written_with_the_names_of_go() -> None:
    rules = {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    v1 = convert_autoscaler(
        autoscaler([cpu], behavior={"scaleUp": {**rules, "stabilizationWindowSeconds": 0}, "scaleDown": rules}), "v1"
    )
    assert '"Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}]' in v1["metadata"]["annotations"][BEHAVIOR]


def test_a_broken_annotation_vanishes_and_the_default_target_steps_in() -> None:
    obj: Object = {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "h", "annotations": {METRICS: "{no json"}},
        "spec": {"maxReplicas": 3},
    }
    default_autoscaler_v1(obj)
    assert "annotations" not in obj["metadata"]
    assert obj["spec"]["targetCPUUtilizationPercentage"] == 80


def test_fields_in_annotations_are_found_however_they_are_capitalised_and_amounts_may_be_numbers() -> None:
    given = autoscaler([])
    given["apiVersion"] = "autoscaling/v1"
    given["metadata"]["annotations"] = {
        METRICS: (
            '[{"Type":"Pods","pods":{"METRICNAME":"x","targetaveragevalue":0.5,"selector":{"MatchLabels":{"A":"b"}}}}]'
        ),
        BEHAVIOR: '{"scaleup":{"stabilizationwindowseconds":5}}',
    }
    spec = convert_autoscaler(given, "v2")["spec"]
    metric = {"name": "x", "selector": {"matchLabels": {"A": "b"}}}
    assert spec["metrics"] == [
        {"type": "Pods", "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "500m"}}}
    ]
    assert spec["behavior"] == {"scaleUp": {"stabilizationWindowSeconds": 5}}


def test_v2_does_not_know_the_annotations_of_v1() -> None:
    obj = autoscaler([])
    obj["metadata"]["annotations"] |= {METRICS: "[]", BEHAVIOR: "{}"}
    without_v1_annotations(obj)
    assert obj["metadata"]["annotations"] == {"mine": "kept"}


def test_v2_omits_the_zero_current_replicas_of_v1() -> None:
    v1 = convert_autoscaler(autoscaler([]), "v1")
    assert v1["status"] == {"desiredReplicas": 0, "currentReplicas": 0}
    assert convert_autoscaler(v1, "v2")["status"] == {"desiredReplicas": 0, "currentMetrics": None}
