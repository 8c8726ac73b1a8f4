"""Tests of `--version` and `tetrapod version`."""

from __future__ import annotations

import importlib.metadata

import pytest
from click.testing import CliRunner

from tetrapod.cli.main import main

TETRAPOD = f"Tetrapod {importlib.metadata.version('tetrapod-apiserver')}, Kubernetes v1.37.1\n"


@pytest.mark.parametrize("arguments", [("version",), ("--version",)])
def test_the_command_prints_its_own_version_and_that_of_kubernetes(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(main, arguments).output == TETRAPOD


@pytest.mark.parametrize("command", [("up",), ("serve", "core"), ("kube-apiserver",), ("proxy",)])
def test_servers_print_the_version_of_kubernetes_as_upstream_does(command: tuple[str, ...]) -> None:
    outcome = CliRunner().invoke(main, [*command, "--version"])
    assert (outcome.exit_code, outcome.output) == (0, "Kubernetes v1.37.1\n")
