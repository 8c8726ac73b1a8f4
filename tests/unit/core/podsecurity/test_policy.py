"""Tests of the policy that a namespace's labels select."""

from __future__ import annotations

import pytest

from tetrapod.core.podsecurity.policy import ALLOW_ALL, LevelVersion, Policy, from_labels

PREFIX = "pod-security.kubernetes.io/"


def test_without_labels_everything_is_allowed() -> None:
    assert from_labels(None) == (Policy(), [])
    assert from_labels({"kubernetes.io/metadata.name": "a"}) == (Policy(), [])
    assert Policy().fully_privileged


def test_each_mode_has_a_level_and_a_version() -> None:
    policy, errors = from_labels(
        {PREFIX + "enforce": "baseline", PREFIX + "warn": "restricted", PREFIX + "warn-version": "v1.99"}
    )
    assert not errors
    assert policy == Policy(LevelVersion("baseline", "latest"), ALLOW_ALL, LevelVersion("restricted", "v1.99"))
    assert list(map(str, policy)) == ["baseline:latest", "privileged:latest", "restricted:v1.99"]


@pytest.mark.parametrize(
    ("labels", "warn"),
    [
        ({"enforce": "baseline", "enforce-version": "v1.31"}, "baseline:v1.31"),
        ({"enforce": "baseline", "enforce-version": "v1.31", "warn-version": "v1.0"}, "baseline:v1.0"),
        ({"enforce": "baseline", "warn": "privileged"}, "privileged:latest"),
        ({"enforce": "none"}, "privileged:latest"),
        ({"enforce-version": "v1.31"}, "privileged:latest"),
    ],
)
def test_warnings_follow_the_enforced_level_unless_they_have_a_label(labels: dict[str, str], warn: str) -> None:
    policy, _ = from_labels({PREFIX + name: value for name, value in labels.items()})
    assert str(policy.warn) == warn


def test_a_stricter_default_of_warnings_is_kept() -> None:
    defaults = Policy(warn=LevelVersion("restricted", "latest"))
    assert from_labels({PREFIX + "enforce": "baseline"}, defaults)[0].warn == defaults.warn


def test_invalid_labels_enforce_restricted_and_warn_privileged() -> None:
    policy, errors = from_labels(
        {PREFIX + mode: "none" for mode in ("enforce", "audit", "warn")} | {PREFIX + "audit-version": "1.20"}
    )
    assert [each.level for each in policy] == ["restricted", "privileged", "privileged"]
    assert list(map(str, errors)) == [
        f'metadata.labels[{PREFIX}enforce]: Invalid value: "none": must be one of privileged, baseline, restricted',
        f'metadata.labels[{PREFIX}audit]: Invalid value: "none": must be one of privileged, baseline, restricted',
        f'metadata.labels[{PREFIX}audit-version]: Invalid value: "1.20": must be "latest" or "v1.x"',
        f'metadata.labels[{PREFIX}warn]: Invalid value: "none": must be one of privileged, baseline, restricted',
    ]


@pytest.mark.parametrize(
    "version", ["", "v1", "v1.", "v1.01", "v2.0", "v1.1\n", "v1.9223372036854775808", "v1." + "9" * 5000, "Latest"]
)
def test_invalid_versions_are_rejected(version: str) -> None:
    policy, errors = from_labels({PREFIX + "enforce-version": version})
    assert policy.enforce == ALLOW_ALL
    assert len(errors) == 1
