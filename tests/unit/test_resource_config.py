"""Tests of --runtime-config. The error texts of upstream are those of a kube-apiserver v1.37.1 with the same flag."""

from __future__ import annotations

import pytest

from tetrapod.generic.server.resource_config import EVERYTHING, ResourceConfig, RuntimeConfigError, resource_config


def config(settings: str) -> ResourceConfig:
    return resource_config([part for part in settings.split(",") if part])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("api/all=maybe", "invalid value api/all=maybe"),
        ("api/beta=", "invalid value api/beta="),
        ("api/beta=TRUE", "invalid value api/beta=TRUE"),
        ("api/all=false", "invalid runtime-config with only api/all=false"),
        ("foo/v1=true", "unknown api groups foo/v1"),
        ("foo/v1,bar/v2=false", "unknown api groups bar/v2,foo/v1"),
        ("apps/v9=true", "group version apps/v9 that has not been registered"),
        ("apps/=true", "group version apps/ that has not been registered"),
        ("apps/v1=maybe", 'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
        (
            "apps/v1/Deployments=true",
            "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, "
            'not "Deployments"',
        ),
        ("apps/v1/deployments/status=true", "runtime-config invalid key apps/v1/deployments/status"),
        ("apps=true", "runtime-config invalid key apps"),
        ("=true", "runtime-config invalid key "),
    ],
)
def test_invalid_settings_are_rejected_with_upstreams_texts(settings: str, text: str) -> None:
    with pytest.raises(RuntimeConfigError) as caught:
        config(settings)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            "api/all=false",
            "[--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true, "
            "invalid runtime-config with only api/all=false]",
        ),
        ("api/ga=false", "--runtime-config=api/ga=false conflicts with --enable-priority-and-fairness=true"),
    ],
)
def test_priority_and_fairness_needs_its_group(settings: str, text: str) -> None:
    with pytest.raises(RuntimeConfigError) as caught:
        resource_config([settings], flow_control=True)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("networking.k8s.io/v1=false", "networking.k8s.io/v1/ipaddresses, networking.k8s.io/v1/servicecidrs cannot be"),
        ("/v1/pods=false", "v1/pods cannot be disabled"),
        ("v1=false", "v1/configmaps, v1/endpoints, v1/events and 9 more cannot be disabled"),
        ("api/ga=false", "more cannot be disabled, because the server itself needs it"),
    ],
)
def test_settings_that_are_not_possible_here_are_rejected(settings: str, text: str) -> None:
    with pytest.raises(RuntimeConfigError, match="--runtime-config: ") as caught:
        config(settings)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        "v1=true",
        "api/v1",
        "api/legacy=false",
        "api/beta=false,api/alpha=false",
        "apps/v1beta1=true",
        "batch/v1beta1",
        "storage.k8s.io/v1beta1=true",
        "scheduling.k8s.io/v1beta1/workloads",
    ],
)
def test_settings_that_upstream_accepts_without_effect_are_accepted(settings: str) -> None:
    assert config(settings).enabled("apps", "v1", "deployments")


def test_without_settings_everything_is_served() -> None:
    assert config("") is EVERYTHING
    assert EVERYTHING.serves("apps", "v1")


def test_versions_and_resources_are_disabled() -> None:
    disabled = config(
        "autoscaling/v1=false,apps/v1=false,apps/v1/deployments=true,policy/v1/poddisruptionbudgets=false"
    )
    assert not disabled.serves("autoscaling", "v1")
    assert disabled.serves("autoscaling", "v2")
    assert disabled.enabled("apps", "v1", "deployments")
    assert not disabled.enabled("apps", "v1", "daemonsets")
    assert disabled.serves("apps", "v1")
    assert not disabled.serves("policy", "v1")


def test_a_specific_setting_overrides_a_pattern() -> None:
    settings = "api/all=true,batch/v1=false,batch/v1/jobs=true"
    assert config(settings).enabled("batch", "v1", "jobs")
    assert not config(settings).enabled("batch", "v1", "cronjobs")


def test_optional_versions_are_off_unless_they_are_enabled() -> None:
    assert not EVERYTHING.serves("resource.k8s.io", "v1beta1")
    assert not config("apps/v1=true").enabled("resource.k8s.io", "v1beta1", "resourceclaims")
    for settings in ("api/beta=true", "api/all=true", "resource.k8s.io/v1beta1"):
        assert config(settings).serves("resource.k8s.io", "v1beta1"), settings
    single = config("resource.k8s.io/v1beta1/resourceclaims=true")
    assert single.enabled("resource.k8s.io", "v1beta1", "resourceclaims")
    assert not single.enabled("resource.k8s.io", "v1beta1", "resourceslices")
    assert not config("api/all=true,resource.k8s.io/v1beta1=false").serves("resource.k8s.io", "v1beta1")
    assert not config("api/all=true").serves("scheduling.k8s.io", "v1beta1")  # behind a feature gate
