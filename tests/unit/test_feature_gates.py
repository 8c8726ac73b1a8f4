"""Tests of --feature-gates. The error texts are those of a kube-apiserver v1.37.1 with the same flag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tetrapod.generic.configuration import effective_version, feature_gates
from tetrapod.generic.configuration.feature_gates import (
    INTERNAL,
    SWITCHABLE,
    FeatureGateError,
    configure,
    enabled,
    known_gates,
)

FIXED = "HostnameOverride"
"""A gate that is locked in this release, so it keeps its default in an emulated one in which it is not."""


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    yield
    effective_version.configure(())
    configure(())


def test_gates_of_the_release_have_their_defaults() -> None:
    gates = known_gates()
    assert len(gates) == 254
    assert gates["WatchList"].stage == "BETA" and enabled("WatchList")
    assert gates["CBORServingAndStorage"].stage == "ALPHA" and not enabled("CBORServingAndStorage")
    assert gates["KubeletSeparateDiskGC"].read is False
    assert gates.keys() >= SWITCHABLE


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("AllAlpha", "missing bool value for AllAlpha"),
        (
            "AllAlpha=maybe",
            'invalid value of AllAlpha=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        ("foo:X=true", "component not registered: foo"),
        (
            "WatchList=true,kube:WatchList=true",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
        (
            "DisableNodeKubeProxyVersion=false",
            "cannot set feature gate DisableNodeKubeProxyVersion to false, feature is locked to true",
        ),
        (
            "WorkloadWithJob=true",
            "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
    ],
)
def test_invalid_settings_are_rejected_with_upstreams_texts(settings: str, text: str) -> None:
    with pytest.raises(FeatureGateError) as caught:
        configure(settings.split(","))
    assert str(caught.value) == text


def test_all_dependencies_of_all_alpha_are_reported() -> None:
    with pytest.raises(FeatureGateError) as caught:
        configure(["AllAlpha=true"])
    text = str(caught.value)
    assert text.startswith(
        "[CompositePodGroup is enabled, but depends on features that are disabled: [GenericWorkload], "
    )
    assert text.count("depends on") == 4


def test_gates_without_their_effect_keep_their_default() -> None:
    effective_version.configure(["1.36"])
    configure([f"{FIXED}=true", "MutatingAdmissionPolicy=true"])
    with pytest.raises(FeatureGateError, match=f"only the default behaviour of {FIXED}"):
        configure([f"{FIXED}=false"])


def test_all_alpha_and_all_beta_set_gates_without_their_effect_too(caplog: pytest.LogCaptureFixture) -> None:
    effective_version.configure(["1.36"])
    configure(["AllBeta=false"])
    assert not enabled(FIXED) and not enabled("WatchList")
    (text,) = (record.message for record in caplog.records if "only the default behaviour" in record.message)
    assert text.startswith("AllBeta=false: ") and FIXED in text and "WatchList" not in text
    with pytest.raises(FeatureGateError, match=f"only the default behaviour of {FIXED}"):
        configure(["AllBeta=false", f"{FIXED}=false"])


def test_gates_of_other_components_are_accepted() -> None:
    configure(["KubeletSeparateDiskGC=false"])
    assert not enabled("KubeletSeparateDiskGC")
    configure(["kube: CPUManagerPolicyAlphaOptions = True"])
    assert enabled("CPUManagerPolicyAlphaOptions")
    assert enabled("KubeletSeparateDiskGC")


def test_all_beta_changes_gates_that_are_not_named() -> None:
    values = feature_gates.parse(["AllBeta=false", "WatchListClient=true", "DRAWorkloadResourceClaims=false"])
    assert values["WatchList"] is False
    assert values["WatchListClient"] is True
    assert "CBORServingAndStorage" not in values


def test_an_invalid_setting_leaves_the_gates_unchanged() -> None:
    configure(["WatchList=false"])
    with pytest.raises(FeatureGateError):
        configure(["Foo=true"])
    assert not enabled("WatchList")


def test_the_document_names_the_gates_that_can_be_set() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/flags.md").read_text()
    effective, other = (
        text.split("| area | gates with their effect |")[1]
        .split("`AllAlpha` and `AllBeta` also")[0]
        .split("| gates that clients cannot observe |")
    )
    assert set(re.findall(r"`(\w+)`", effective)) == SWITCHABLE - {"AllAlpha", "AllBeta"}
    assert set(re.findall(r"`(\w+)`", other)) == INTERNAL
    free = SWITCHABLE | INTERNAL
    assert not {gate.name for gate in known_gates().values() if gate.read and not gate.locked} - free
