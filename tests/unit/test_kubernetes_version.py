"""The places that name the version of Kubernetes that this release follows (docs/reference/versions.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tetrapod.generic.configuration.version import KUBERNETES

ROOT = Path(__file__).parents[2]
FOLLOWING = (
    "deploy/examples/operator-go",
    "tests/e2e/fakekubelet",
    "tests/integration/protobuf/goclient",
    "tests/scale/load",
    "tests/upstream",
    "tools/cluster/kubernetes",
    "tools/stock",
)
"""The Go modules of this version. Those of other projects' programs have their own."""
_OF_KUBERNETES = re.compile(r"^(?:require)?\s*(k8s\.io/\S+) v(?:0|1)\.(\d+)\.(\d+)$", re.M)
_SEPARATE = re.compile(r"k8s\.io/(klog/v2|utils|kube-openapi|gengo/v2|system-validators|mount-utils-.*)$")
_, MINOR, PATCH = KUBERNETES.split(".")


@pytest.mark.parametrize("folder", FOLLOWING)
def test_a_go_module_requires_the_version_of_the_server(folder: str) -> None:
    required = _OF_KUBERNETES.findall((ROOT / folder / "go.mod").read_text())
    assert required
    for module, minor, patch in required:
        assert _SEPARATE.match(module) or (minor, patch) == (MINOR, PATCH), module


def test_the_descriptions_come_from_the_same_minor_version() -> None:
    build = re.search(r"kubernetes-validate==1\.(\d+)\.", (ROOT / "pyproject.toml").read_text())
    source = re.search(r'^VERSION = "v1\.(\d+)\.', (ROOT / "hatch_build.py").read_text(), re.M)
    assert build is not None and source is not None
    assert build[1] == source[1] == MINOR
