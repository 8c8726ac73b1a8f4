"""Validation of container statuses that leave the state terminated, which only restarted containers may do.

Upstream: pkg/apis/core/validation/validation.go, ValidateContainerStateTransition and its siblings, and
pkg/api/v1/pod/util.go, ContainerShouldRestart.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.stored import allows_restart_rules, allows_restarts_of_all, restarts_all_containers
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_INIT: Final = "initContainerStatuses"
_KINDS: Final = {"containerStatuses": "containers", _INIT: "initContainers"}


def transitions(new: list[Object], old: list[Object], name: str, spec: Object) -> list[FieldError]:
    """Reject container statuses that leave the state terminated, unless the container can be restarted.

    Restart rules, the container's own policy and that of the pod decide, in this order. Without the gate of restart
    rules, all containers and sidecars follow the policies Always and OnFailure. Ephemeral containers never restart.

    Args:
        new: the container statuses of one kind.
        old: the stored ones.
        name: their field in the status, such as "initContainerStatuses".
        spec: the stored pod spec, whose restart policies apply.
    """
    ruled = name in _KINDS and allows_restart_rules()
    if ruled and restarts_all_containers(spec) and allows_restarts_of_all():
        return []
    containers = {container.get("name"): container for container in spec.get(_KINDS.get(name, "")) or ()}
    running: dict[str | None, int] = {}
    for status in new:
        if (status.get("state") or {}).get("terminated") is None:
            running[status.get("name")] = running.get(status.get("name"), 0) + 1
    errors: list[FieldError] = []
    for i, status in enumerate(old):
        terminated, container = (status.get("state") or {}).get("terminated"), containers.get(status.get("name"))
        if terminated is None or not (times := running.get(status.get("name"), 0)):
            continue
        code = terminated.get("exitCode") or 0
        if ruled:
            restarts, times = container is not None and _restarts(container, spec, code), 1
        else:
            sidecar = name == _INIT and container is not None and container.get("restartPolicy") == "Always"
            restarts = name in _KINDS and (sidecar or _follows(spec.get("restartPolicy"), code))
        if not restarts:
            text = "may not be transitioned to non-terminated state"
            errors += [field.forbidden(f"status.{name}[{i}].state", text)] * times
    return errors


def _restarts(container: Object, spec: Object, code: int) -> bool:
    """Return whether a container of a pod is restarted after it ended with an exit code."""
    own_policy = container.get("restartPolicy")
    if own_policy is None:
        policy = spec.get("restartPolicy")
        return policy not in ("OnFailure", "Never") or _follows(policy, code)
    action = _matching_action(container.get("restartPolicyRules") or [], code)
    if action == "Restart":
        return True
    if action == "RestartAllContainers" and feature_gates.enabled("RestartAllContainersOnContainerExits"):
        return True
    return _follows(own_policy, code)


def _matching_action(rules: list[Object], code: int) -> str:
    """Return the action of the first rule that matches an exit code; "" if none matches."""
    for rule in rules:
        codes = rule.get("exitCodes") or {}
        matches = code in (codes.get("values") or ())
        if (codes.get("operator") == "In" and matches) or (codes.get("operator") == "NotIn" and not matches):
            return str(rule.get("action") or "")
    return ""


def _follows(policy: object, code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)
