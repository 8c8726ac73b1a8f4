"""Tests of `--version` and `tetrapod version`."""

from __future__ import annotations

import importlib.metadata

import pytest
from click.testing import CliRunner

from tetrapod.cli.main import main
from tetrapod.generic.configuration.version import report_version, reported_version

TETRAPOD = f"Tetrapod {importlib.metadata.version('tetrapod-apiserver')}, Kubernetes v1.37.1\n"


@pytest.mark.parametrize("arguments", [("version",), ("--version",)])
def test_the_command_prints_its_own_version_and_that_of_kubernetes(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(main, arguments).output == TETRAPOD


@pytest.mark.parametrize("command", [("up",), ("serve", "core"), ("kube-apiserver",), ("proxy",)])
def test_servers_print_the_version_of_kubernetes_as_upstream_does(command: tuple[str, ...]) -> None:
    outcome = CliRunner().invoke(main, [*command, "--version"])
    assert (outcome.exit_code, outcome.output) == (0, "Kubernetes v1.37.1\n")


def test_servers_print_the_version_in_detail() -> None:
    outcome = CliRunner().invoke(main, ["up", "--version=raw"])
    assert outcome.output.startswith(
        'version.Info{Major:"1", Minor:"37", EmulationMajor:"", EmulationMinor:"", MinCompatibilityMajor:"", '
        'MinCompatibilityMinor:"", GitVersion:"v1.37.1", GitCommit:"", GitTreeState:"clean", '
    )


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("v1.36.0", 'version "v1.36.0" must match major/minor/patch of default version "v1.37.1"'),
        ("vx", 'could not parse "vx" as version'),
        ("v1.37", 'illegal version string "v1.37"'),
        ("v1.37.01", 'illegal zero-prefixed version component "01" in "v1.37.01"'),
        ("v1.37.1-a.01", 'illegal zero-prefixed version component "01" in "v1.37.1-a.01"'),
        ("v1.37.1-a_b", 'could not parse pre-release/metadata (-a_b) in version "v1.37.1-a_b"'),
        ("x", 'strconv.ParseBool: parsing "x": invalid syntax'),
    ],
)
def test_a_version_that_cannot_be_reported_is_rejected(version: str, error: str) -> None:
    outcome = CliRunner().invoke(main, ["up", f"--version={version}"])
    assert outcome.exit_code != 0
    assert f'invalid argument "{version}" for "--version" flag: {error}' in outcome.output


@pytest.mark.parametrize("version", ["v1.37.1", "v1.37.1-custom", "v1.37.1-rc.0+build.7"])
def test_a_version_of_the_same_release_can_be_reported(version: str) -> None:
    try:
        report_version(version)
        assert reported_version() == version
    finally:
        report_version("v1.37.1")
