"""Tests of defaults that are set in pods but not in pod templates."""

from __future__ import annotations

from typing import Any

from tetrapod.core.podspec.defaults import default_pod_template
from tetrapod.core.v1.pods.defaults import set_defaults


def _spec() -> dict[str, Any]:
    return {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}


def test_ports_on_the_hosts_network_are_the_hosts_in_pods_only() -> None:
    pod, template = {"spec": _spec()}, {"spec": _spec()}
    set_defaults(pod)
    default_pod_template(template)
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80}]
    assert template["spec"]["containers"][0]["ports"] == [{"containerPort": 80}]
