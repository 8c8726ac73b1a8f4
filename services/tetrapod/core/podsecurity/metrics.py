"""Metrics of the Pod Security plugin. Upstream: k8s.io/pod-security-admission/metrics."""

from __future__ import annotations

from typing import Final

from tetrapod.core.podsecurity.policy import LATEST, PRIVILEGED, LevelVersion
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.configuration.version import KUBERNETES
from tetrapod.generic.metrics.counters import Counter

_OF: Final = ("request_operation", "resource", "subresource")
_EVALUATIONS: Final = Counter(
    "pod_security_evaluations_total",
    "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
    ("decision", "policy_level", "policy_version", "mode", *_OF),
)
_EXEMPTIONS: Final = Counter(
    "pod_security_exemptions_total", "Number of exempt requests, not counting ignored or out of scope requests.", _OF
)
_ERRORS: Final = Counter(
    "pod_security_errors_total",
    "Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile "
    "being used for evaluation.",
    ("fatal", *_OF),
)
_RESOURCES: Final = {"pods": "pod", "namespaces": "namespace"}
_MINOR: Final = int(KUBERNETES.split(".")[1])
for _operation in ("create", "update"):
    _EVALUATIONS.add(("allow", PRIVILEGED, LATEST, "enforce", _operation, "pod", ""), 0)
    for _resource in ("controller", "pod"):
        _EXEMPTIONS.add((_operation, _resource, ""), 0)


def evaluated(decision: str, policy: LevelVersion, mode: str, attributes: Attributes) -> None:
    """Count one evaluation of the request's object against a policy.

    Args:
        decision: "allow" or "deny".
        mode: "enforce", "audit" or "warn".
    """
    _EVALUATIONS.add((decision, policy.level, _version(policy), mode, *_of(attributes)))


def exempted(attributes: Attributes) -> None:
    """Count an exempt request."""
    _EXEMPTIONS.add(_of(attributes))


def failed(attributes: Attributes, *, fatal: bool) -> None:
    """Count an error that occurred when a policy was read or evaluated.

    Args:
        attributes: the request.
        fatal: whether the error prevented the evaluation; otherwise a default policy was evaluated instead.
    """
    _ERRORS.add(("true" if fatal else "false", *_of(attributes)))


def _of(attributes: Attributes) -> tuple[str, str, str]:
    """Return the labels request_operation, resource and subresource. Workloads have the resource "controller"."""
    resource = _RESOURCES.get(attributes.resource.resource, "controller")
    return attributes.operation.lower(), resource, attributes.subresource


def _version(policy: LevelVersion) -> str:
    """Return the label policy_version: "latest" for privileged, "future" for versions newer than this server."""
    if policy.level == PRIVILEGED or policy.minor is None:
        return LATEST
    return "future" if policy.minor > _MINOR else policy.version
