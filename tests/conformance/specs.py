"""The specs of upstream's e2e suite, as e2e.test lists them: those of conformance, and those beyond it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import yaml

from cluster.commands import run
from cluster.settings import Paths

_SIG: Final = re.compile(r"\[sig-([a-z-]+)\]")
_LISTED: Final = re.compile(r"^\s*\S+\.go:\d+: (.*)$", re.MULTILINE)
_CONFORMANCE: Final = "[Conformance]"
BEYOND: Final = ("api-machinery", "auth", "cli", "apps", "network", "storage", "instrumentation")
"""The groups whose specs beyond conformance are of interest: they touch the API server."""
_LEFT_OUT: Final = (
    (
        re.compile(r"\[Feature:[^\]]+\]"),
        "needs a feature that the cluster of `make cluster` lacks, or that is off by default",
    ),
    (re.compile(r"\[Alpha\]"), "needs a feature gate that is off by default"),
    (
        re.compile(
            r"\[Driver: [^\]]+\]|\[Provider:[^\]]+\]|CSI Mock|PersistentVolumes NFS|MutableCSINodeAllocatableCount"
            r"|Volume metrics (Ephemeral|PVC) "
        ),
        "needs a storage driver, an NFS server or a cloud provider",
    ),
    (re.compile(r"\[Slow\]"), "takes more than five minutes; upstream's jobs for changes leave it out too"),
    (re.compile(r"\[Disruptive\]"), "restarts parts of the cluster; upstream's jobs for changes leave it out too"),
    (re.compile(r"\[Flaky\]"), "is flaky, as upstream says"),
)
"""Tags of specs that do not run, and why."""
SHORT: Final = (
    "[sig-api-machinery] AdmissionWebhook [Privileged:ClusterAdmin] should mutate custom resource with pruning",
    "[sig-api-machinery] Aggregator Should be able to support the 1.17 Sample API Server",
    "[sig-api-machinery] CustomResourceConversionWebhook [Privileged:ClusterAdmin] should be able to convert from CR",
    "[sig-api-machinery] CustomResourcePublishOpenAPI [Privileged:ClusterAdmin] works for CRD with validation schema",
    "[sig-api-machinery] Garbage collector should delete RS created by deployment when not orphaning",
    "[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a service.",
    "[sig-api-machinery] Watchers should receive events on concurrent watches in same order",
    "[sig-apps] Deployment should run the lifecycle of a Deployment",
    "[sig-apps] Job should run a job to completion when tasks sometimes fail and are locally restarted",
    "[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should have a working scale subresource",
    "[sig-auth] ServiceAccounts should mount an API token into pods",
    "[sig-auth] Certificates API [Privileged:ClusterAdmin] should support CSR API operations",
    "[sig-cli] Kubectl client Guestbook application should create and stop a working application",
    "[sig-instrumentation] Events API should ensure that an event can be fetched, patched, deleted, and listed",
    "[sig-network] DNS should provide DNS for services",
    "[sig-network] Services should be able to create a functioning NodePort service",
    "[sig-node] Pods should support remote command execution over websockets",
    "[sig-node] Variable Expansion should allow composing env vars into new env vars",
    "[sig-scheduling] LimitRange should create a LimitRange with defaults and ensure pod has those defaults applied.",
    "[sig-storage] Projected combined should project all components that make up the projection API",
)
"""The beginnings of the names of specs that are quick and together touch most of the server."""


@dataclass(frozen=True, order=True)
class Spec:
    """A spec, with its whole name."""

    name: str

    @property
    def sig(self) -> str:
        """The special interest group that the spec belongs to."""
        found = _SIG.search(self.name)
        assert found, self.name
        return found[1]


def conformance_specs(paths: Paths) -> list[Spec]:
    """Return all specs of the suite, sorted."""
    listed = yaml.safe_load(run(paths.programs / "e2e.test", "--list-conformance-tests"))
    return sorted(Spec(" ".join(entry["codename"].split())) for entry in listed)


def beyond_specs(paths: Paths) -> list[Spec]:
    """Return the specs of `BEYOND` that are not part of conformance, sorted."""
    names = _LISTED.findall(run(paths.programs / "e2e.test", "--list-tests"))
    specs = sorted({Spec(" ".join(name.split())) for name in names if _SIG.search(name) and _CONFORMANCE not in name})
    return [spec for spec in specs if spec.sig in BEYOND]


def left_out(spec: Spec) -> str:
    """Return why a spec beyond conformance does not run here; "" if it runs."""
    return next((reason for tag, reason in _LEFT_OUT if tag.search(spec.name)), "")


def short_specs(specs: Iterable[Spec]) -> list[Spec]:
    """Return the specs of the short form.

    Raises:
        ValueError: a name of `SHORT` is the beginning of no spec, or of more than one.
    """
    specs = list(specs)
    found = []
    for name in SHORT:
        matching = [spec for spec in specs if spec.name.startswith(name)]
        if len(matching) != 1:
            raise ValueError(f"{len(matching)} specs are called {name}")
        found += matching
    return found


def focus(specs: Iterable[Spec]) -> str:
    """Return the regular expression that selects only these specs. Ginkgo puts the name of the suite before theirs."""
    names = (" +".join(map(re.escape, spec.name.split())) for spec in specs)
    return f" ({'|'.join(names)})$"
