"""Helm, and the chart of this project rendered or installed by it."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.kubectl import Kubectl

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/tetrapod"
KUBERNETES = "--kube-version=1.30.0"
"""The version to render for without a server: a helm that is built from source assumes Kubernetes 1.20."""

Object = dict[str, Any]


@functools.cache
def _built() -> str | None:
    found = subprocess.run([ROOT / "tools/helm.sh"], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def executable() -> str:
    """Return the path of helm; skip the test if it is not available."""
    found = _built()
    if found is None:
        pytest.skip("helm is not on this machine and cannot be built; tools/helm.sh says why")
    return found


def run(*args: str, kubectl: Kubectl | None = None, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    """Run helm and return the result, also if it failed. Uses the cluster and namespace of `kubectl`."""
    where = ["--namespace", kubectl.namespace] if kubectl else []
    env = kubectl.env() if kubectl else None
    return subprocess.run(
        [executable(), *where, *args], env=env, capture_output=True, text=True, timeout=timeout, check=False
    )


def helm(*args: str, kubectl: Kubectl | None = None, timeout: float = 100) -> str:
    done = run(*args, kubectl=kubectl, timeout=timeout)
    assert done.returncode == 0, f"helm {' '.join(args)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def settings(**values: object) -> list[str]:
    """Return `--set-json` flags for values by path, where a double underscore represents a dot."""
    import json

    return [
        flag
        for key, value in values.items()
        for flag in ("--set-json", f"{key.replace('__', '.')}={json.dumps(value)}")
    ]


def render(*flags: str, release: str = "rel", namespace: str = "ns") -> list[Object]:
    text = helm("template", release, str(CHART), "--namespace", namespace, KUBERNETES, *flags)
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(objects: Sequence[Object], kind: str) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == kind}


def pod_templates(objects: Sequence[Object]) -> dict[str, Object]:
    """Return the metadata and spec of every pod that the objects would create, by KIND/NAME."""
    templates = {}
    for obj in objects:
        name, spec = f"{obj['kind']}/{obj['metadata']['name']}", obj.get("spec") or {}
        match obj["kind"]:
            case "Pod":
                templates[name] = obj
            case "Deployment" | "StatefulSet" | "Job":
                templates[name] = spec["template"]
            case "CronJob":
                templates[name] = spec["jobTemplate"]["spec"]["template"]
    return templates
