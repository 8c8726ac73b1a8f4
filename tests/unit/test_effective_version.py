"""Tests of --emulated-version and its companions. The error texts are those of a kube-apiserver v1.37.1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tetrapod.generic.configuration import effective_version, feature_gates
from tetrapod.generic.configuration.effective_version import EffectiveVersionError, configure
from tetrapod.generic.configuration.feature_gates import FeatureGateError, enabled, known_gates
from tetrapod.generic.server.resource_config import ResourceConfig, RuntimeConfigError, resource_config

MIGRATOR = ("StorageVersionMigrator=true",)
"""The gate of migrations, which v1.36 has off by default."""
FORWARD = "cannot be set to true if the emulation version is the same as the binary version"


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    yield
    configure()
    feature_gates.configure(())


def config(settings: str) -> ResourceConfig:
    return resource_config([part for part in settings.split(",") if part])


@pytest.mark.parametrize(
    ("emulated", "oldest", "text"),
    [
        (
            "1.30",
            "",
            "[emulation version 1.30 is not between [1.34, 1.37.0], "
            "minCompatibilityVersion version 1.34 is not between [1.34, 1.30]]",
        ),
        ("1.38", "", "emulation version 1.38 is not between [1.34, 1.37.0]"),
        ("foo", "", 'could not parse "foo" as version'),
        ("1", "", 'illegal version string "1"'),
        ("kube=1.36.1", "", "patch version not allowed, got: kube=1.36.1"),
        ("x=1.36", "", "component not registered: x"),
        ("1.36,kube=1.35", "", "duplicate version flag, kube=1.36 and kube=1.35"),
        ("", "1.30", "minCompatibilityVersion version 1.30 is not between [1.34, 1.37]"),
        ("1.36", "1.37", "minCompatibilityVersion version 1.37 is not between [1.34, 1.36]"),
    ],
)
def test_invalid_releases_are_rejected_with_upstreams_texts(emulated: str, oldest: str, text: str) -> None:
    with pytest.raises(EffectiveVersionError) as caught:
        configure([part for part in emulated.split(",") if part], [oldest] if oldest else [])
    assert str(caught.value) == text


def test_forward_compatibility_needs_another_release() -> None:
    with pytest.raises(EffectiveVersionError, match=f"ServerRunOptions.EmulationForwardCompatible {FORWARD}"):
        configure(forward_compatible=True)
    with pytest.raises(EffectiveVersionError, match="RuntimeConfigEmulationForwardCompatible"):
        configure(["1.37"], runtime_config_forward_compatible=True)


def test_the_minimum_follows_the_emulated_release() -> None:
    for emulated, oldest in (("1.37", (1, 36)), ("kube=1.36", (1, 35)), ("v1.34", (1, 34))):
        configure([emulated])
        assert effective_version.effective_version().min_compatibility == oldest


@pytest.mark.parametrize(("oldest", "expected"), [("1.37", True), ("1.36", False), ("1.34", False)])
def test_a_default_depends_on_the_oldest_release_of_components(oldest: str, expected: bool) -> None:
    configure((), [oldest])
    feature_gates.configure(())
    assert enabled("DRAFractionalCapacityRange") is expected
    feature_gates.configure(["DRAFractionalCapacityRange=false"])
    assert not enabled("DRAFractionalCapacityRange")


def test_versions_of_other_releases_are_not_served() -> None:
    configure(["1.36"])
    assert not config("").serves("storagemigration.k8s.io", "v1")
    assert not config("").enabled("resource.k8s.io", "v1", "devicetaintrules")
    assert config("").enabled("resource.k8s.io", "v1", "resourceclaims")
    assert config("api/all=true").serves("networking.k8s.io", "v1beta1")
    configure(["1.37"])
    assert config("").serves("storagemigration.k8s.io", "v1")
    assert not config("api/all=true").serves("networking.k8s.io", "v1beta1")


def test_newer_versions_follow_an_older_one_if_they_are_forward_compatible() -> None:
    configure(["1.36"], forward_compatible=True)
    feature_gates.configure(MIGRATOR)
    assert not config("").serves("storagemigration.k8s.io", "v1")
    assert config("storagemigration.k8s.io/v1beta1=true").serves("storagemigration.k8s.io", "v1")
    configure(["1.35"], forward_compatible=True)
    feature_gates.configure(())
    only_alpha = config("admissionregistration.k8s.io/v1alpha1=true")
    assert not only_alpha.enabled("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies")


def test_newer_versions_are_enabled_by_name_only_if_a_flag_allows_it() -> None:
    configure(["1.36"])
    assert not config("storagemigration.k8s.io/v1=true").serves("storagemigration.k8s.io", "v1")
    feature_gates.configure(MIGRATOR)
    consider = "Consider setting --runtime-config-emulation-forward-compatible=true"
    with pytest.raises(RuntimeConfigError) as caught:
        config("storagemigration.k8s.io/v1=true")
    assert str(caught.value) == (
        "cannot enable version storagemigration.k8s.io/v1 in runtime-config because all the resources have been "
        f"introduced after the current version 1.36. {consider}"
    )
    with pytest.raises(RuntimeConfigError) as caught:
        config("resource.k8s.io/v1/devicetaintrules=true")
    assert str(caught.value) == (
        "cannot enable resource resource.k8s.io/v1, Resource=devicetaintrules in runtime-config because it is "
        f"introduced at 1.37 after the current version 1.36. {consider}"
    )
    configure(["1.36"], runtime_config_forward_compatible=True)
    assert config("storagemigration.k8s.io/v1=true").serves("storagemigration.k8s.io", "v1")
    assert config("resource.k8s.io/v1/devicetaintrules=true").enabled("resource.k8s.io", "v1", "devicetaintrules")
    assert not config("").serves("storagemigration.k8s.io", "v1")


def test_gates_have_the_stages_of_the_emulated_release(caplog: pytest.LogCaptureFixture) -> None:
    assert known_gates()["ClusterTrustBundle"].stage == "GA"
    configure(["1.34"])
    feature_gates.configure(())
    assert "Tetrapod has the present behaviour of " in caplog.text
    assert known_gates()["ClusterTrustBundle"].stage == "BETA"
    assert not enabled("ClusterTrustBundle") and not enabled("EvictionRequestAPI")
    assert "EvictionRequestAPI" not in known_gates()
    assert not config("api/all=true").serves("certificates.k8s.io", "v1beta1")
    with pytest.raises(FeatureGateError) as caught:
        feature_gates.configure(["EvictionRequestAPI=true"])
    assert str(caught.value) == (
        "cannot set feature gate EvictionRequestAPI to true, feature is PreAlpha at emulated version 1.34, "
        "min compatibility version 1.34"
    )
    feature_gates.configure(["ClusterTrustBundle=true"])
    assert config("api/all=true").enabled("certificates.k8s.io", "v1beta1", "clustertrustbundles")
    with pytest.raises(KeyError):
        enabled("Foo")
