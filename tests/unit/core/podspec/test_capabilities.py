"""Checks that privileged containers are rejected where the cluster does not allow them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tetrapod.core.podspec import capabilities
from tetrapod.core.podspec.workloads import pod_template_spec
from tetrapod.core.v1.pods import validation

POLICY = "disallowed by cluster policy"


@pytest.fixture
def nobody_is_privileged() -> Iterator[None]:
    capabilities.set_up(privileged=False)
    yield
    capabilities.set_up(privileged=True)


def error_fields(errors: list[Any]) -> list[str]:
    return [str(error.field) for error in errors if POLICY in error.detail]


def spec(**more: Any) -> dict[str, Any]:
    privileged = {"securityContext": {"privileged": True}}
    return {
        "containers": [
            {"name": "a", "image": "x", **privileged},
            {"name": "b", "image": "x", "securityContext": {"privileged": False}},
        ],
        "initContainers": [{"name": "i", "image": "x", **privileged}],
        **more,
    }


@pytest.mark.usefixtures("nobody_is_privileged")
def test_privileged_containers_are_forbidden_in_pods_and_in_templates() -> None:
    pod = {"metadata": {"name": "p"}, "spec": spec()}
    names = ["containers[0]", "initContainers[0]"]
    assert error_fields(validation.validate(pod)) == [f"spec.{name}.securityContext.privileged" for name in names]
    assert error_fields(pod_template_spec({"spec": spec()}, "template")) == [
        f"template.spec.{name}.securityContext.privileged" for name in names
    ]


@pytest.mark.usefixtures("nobody_is_privileged")
def test_windows_host_processes_are_forbidden_too() -> None:
    on_host = spec(hostNetwork=True, securityContext={"windowsOptions": {"hostProcess": True}}, initContainers=[])
    assert error_fields(validation.validate({"metadata": {"name": "p"}, "spec": on_host})) == [
        "spec.containers[0].securityContext.privileged",
        "spec",
    ]


def test_privileged_containers_are_allowed_by_default() -> None:
    assert error_fields(validation.validate({"metadata": {"name": "p"}, "spec": spec()})) == []
