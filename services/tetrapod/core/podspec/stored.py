"""The stored pod or pod template while an update is validated.

Some rules depend on a feature gate, and some are younger than objects in the store. They also accept what the stored
object has already, so that it can still be updated.
Upstream: pkg/api/pod/util.go, GetValidationOptionsFromPodSpecAndMeta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object

Rule = Callable[[Object], bool]
"""A function that returns whether a pod spec has something, such as a value that is invalid today."""
_COMPARISONS: Final = ("Lt", "Gt")
_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
_ALL: Final = "RestartAllContainers"


class _Stored:
    """The stored pod or pod template of an update, with the answers of rules, each of which is asked once.

    Without that, an update with many errors would look through a large stored spec for each of them.
    """

    __slots__ = ("_answers", "metadata", "spec")

    def __init__(self, stored: Object) -> None:
        self.spec: Object = stored.get("spec") or {}
        self.metadata: Object = stored.get("metadata") or {}
        self._answers: dict[Rule, bool] = {}

    def has(self, rule: Rule) -> bool:
        answer = self._answers.get(rule)
        if answer is None:
            answer = self._answers[rule] = rule(self.spec)
        return answer


_STORED: ContextVar[_Stored | None] = ContextVar("stored_pod", default=None)


@contextmanager
def updating(stored: Object | None) -> Iterator[None]:
    """Validate the update of a pod or pod template within this context.

    Args:
        stored: the stored pod or pod template; None without one.
    """
    token = _STORED.set(None if stored is None else _Stored(stored))
    try:
        yield
    finally:
        _STORED.reset(token)


def stored_spec_has(rule: Rule) -> bool:
    """Return whether an update is validated, and the stored pod spec satisfies a rule.

    Args:
        rule: a function of a module, because its answer is kept during the validation.
    """
    stored = _STORED.get()
    return stored is not None and stored.has(rule)


def stored_annotation(key: str) -> str | None:
    """Return an annotation of the stored pod or pod template; None without one, and if no update is validated."""
    stored = _STORED.get()
    value: str | None = None if stored is None else (stored.metadata.get("annotations") or {}).get(key)
    return value


def some_container(rule: Callable[[Object], bool]) -> Rule:
    """Return a rule of pod specs: any container, of all three kinds, satisfies `rule`."""
    return lambda spec: any(rule(container) for kind in _KINDS for container in spec.get(kind) or ())


def allows_comparisons() -> bool:
    """Return whether tolerations may compare numbers, by the operators Lt and Gt."""
    if feature_gates.enabled("TaintTolerationComparisonOperators"):
        return True
    return stored_spec_has(_compares)


def _compares(spec: Object) -> bool:
    return any(toleration.get("operator") in _COMPARISONS for toleration in spec.get("tolerations") or ())


def allows_host_network_with_users() -> bool:
    """Return whether a pod with its own user namespace may use the network of its host."""
    if feature_gates.enabled("UserNamespacesHostNetworkSupport"):
        return True
    return stored_spec_has(_shares_network)


def _shares_network(spec: Object) -> bool:
    return spec.get("hostUsers") is False and bool(spec.get("hostNetwork"))


def allows_selinux_policies() -> bool:
    """Return whether a pod may have another seLinuxChangePolicy than Recursive."""
    if feature_gates.enabled("SELinuxMount"):
        return True
    return stored_spec_has(_has_selinux_policy)


def _has_selinux_policy(spec: Object) -> bool:
    return (spec.get("securityContext") or {}).get("seLinuxChangePolicy") is not None


def allows_files_of_variables() -> bool:
    """Return whether environment variables may come from files (fileKeyRef)."""
    if feature_gates.enabled("EnvFiles"):
        return True
    return stored_spec_has(_has_files_of_variables)


@some_container
def _has_files_of_variables(container: Object) -> bool:
    return any((variable.get("valueFrom") or {}).get("fileKeyRef") for variable in container.get("env") or ())


def allows_restart_rules() -> bool:
    """Return whether containers other than sidecars may have a restart policy, and containers restart rules."""
    return feature_gates.enabled("ContainerRestartRules") or stored_spec_has(uses_restart_rules)


def uses_restart_rules(spec: Object) -> bool:
    """Return whether a container other than a sidecar has a restart policy, or an init container restart rules."""
    return any(container.get("restartPolicy") is not None for container in spec.get("containers") or ()) or any(
        container.get("restartPolicyRules") or container.get("restartPolicy") not in (None, "Always")
        for container in spec.get("initContainers") or ()
    )


def allows_restarts_of_all() -> bool:
    """Return whether restart rules may restart all containers, and sidecars have restart rules."""
    return feature_gates.enabled("RestartAllContainersOnContainerExits") or stored_spec_has(_restarts_all)


def _restarts_all(spec: Object) -> bool:
    return restarts_all_containers(spec) or any(
        container.get("restartPolicy") == "Always" and container.get("restartPolicyRules")
        for container in spec.get("initContainers") or ()
    )


def restarts_all_containers(spec: Object) -> bool:
    """Return whether a restart rule of a container or init container restarts all containers."""
    return any(
        rule.get("action") == _ALL
        for kind in _KINDS[:2]
        for container in spec.get(kind) or ()
        for rule in container.get("restartPolicyRules") or ()
    )
