"""The stored pod spec while an update is validated.

Some rules depend on a feature gate. They also accept what the stored spec has already, so that objects which were
stored while the gate was enabled can still be updated.
Upstream: pkg/api/pod/util.go, GetValidationOptionsFromPodSpecAndMeta.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object

_STORED: ContextVar[Object | None] = ContextVar("stored_pod_spec", default=None)
_COMPARISONS: Final = ("Lt", "Gt")


@contextmanager
def updating(stored: Object | None) -> Iterator[None]:
    """Validate the update of a pod spec within this context.

    Args:
        stored: the stored spec; None without one.
    """
    token = _STORED.set(stored)
    try:
        yield
    finally:
        _STORED.reset(token)


def allows_comparisons() -> bool:
    """Return whether tolerations may compare numbers, by the operators Lt and Gt."""
    if feature_gates.enabled("TaintTolerationComparisonOperators"):
        return True
    tolerations = (_STORED.get() or {}).get("tolerations") or ()
    return any(toleration.get("operator") in _COMPARISONS for toleration in tolerations)


def allows_host_network_with_users() -> bool:
    """Return whether a pod with its own user namespace may use the network of its host."""
    if feature_gates.enabled("UserNamespacesHostNetworkSupport"):
        return True
    stored = _STORED.get() or {}
    return stored.get("hostUsers") is False and bool(stored.get("hostNetwork"))


def allows_selinux_policies() -> bool:
    """Return whether a pod may have another seLinuxChangePolicy than Recursive."""
    if feature_gates.enabled("SELinuxMount"):
        return True
    return ((_STORED.get() or {}).get("securityContext") or {}).get("seLinuxChangePolicy") is not None
