"""Columns of Pod. Upstream: pkg/printers/internalversion/printers.go, printPod."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of, status_of
from tetrapod.core.v1.pods.table_fields import PodFields
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import TimedCell, since

_SUCCEEDED: Final[list[Object]] = [
    {"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."}
]
_FAILED: Final[list[Object]] = [
    {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
]


def pod_row(pod: Object) -> list[Any]:
    """Return the cells of a pod, in the order of the columns of `TABLE`."""
    spec, status = spec_of(pod), status_of(pod)
    sidecars = {c["name"] for c in spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"}
    state = _PodState(pod, sidecars)
    gates = spec.get("readinessGates") or []
    ips = status.get("podIPs") or []
    return [
        name_of(pod),
        f"{state.ready}/{state.total}",
        state.reason,
        state.restarts_cell,
        age(pod),
        (ips[0].get("ip", "") if ips else status.get("podIP", "")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{_true_gates(gates, status)}/{len(gates)}" if gates else NONE,
    ]


def _true_gates(gates: list[Object], status: Object) -> int:
    """Return how many of the readiness gates have a condition with status "True"."""
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or []}
    return sum(conditions.get(gate.get("conditionType")) == "True" for gate in gates)


class _PodState:
    """The cells READY, STATUS and RESTARTS of a pod, computed together as in upstream's printPod.

    Attributes:
        total: the number of containers, sidecars included.
        ready: how many of them are ready.
        reason: the text of STATUS, such as "Init:0/1" or "CrashLoopBackOff".
        restarts: the number of restarts.
        last_restart: the RFC 3339 time of the last restart, or "".

    Args:
        pod: the pod.
        sidecars: the names of the init containers with restartPolicy Always.
    """

    def __init__(self, pod: Object, sidecars: set[str]) -> None:
        spec, status = spec_of(pod), status_of(pod)
        self.total = len(spec.get("containers") or []) + len(sidecars)
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""
        self._sidecar_restarts = 0
        self._sidecar_last = ""
        self.reason = status.get("reason") or status.get("phase", "")
        for condition in status.get("conditions") or []:
            if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
                self.reason = "SchedulingGated"
        initializing = self._read_init_containers(spec, status, sidecars)
        if not initializing or _initialized(status):
            self._read_containers(status)
        if pod["metadata"].get("deletionTimestamp") and status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif pod["metadata"].get("deletionTimestamp") and status.get("phase") not in ("Succeeded", "Failed"):
            self.reason = "Terminating"

    def _read_init_containers(self, spec: Object, status: Object, sidecars: set[str]) -> bool:
        """Update the attributes from the init containers, and return whether one of them is still to complete.

        Args:
            sidecars: the names of the init containers with restartPolicy Always.
        """
        total = len(spec.get("initContainers") or [])
        for i, container in enumerate(status.get("initContainerStatuses") or []):
            self.restarts += container.get("restartCount", 0)
            last = _finished(container.get("lastState"))
            self.last_restart = max(self.last_restart, last)
            state = container.get("state") or {}
            if container.get("name") in sidecars:
                self._sidecar_restarts += container.get("restartCount", 0)
                self._sidecar_last = max(self._sidecar_last, last)
            terminated, waiting = state.get("terminated"), state.get("waiting")
            if terminated is not None and terminated.get("exitCode", 0) == 0:
                continue
            if container.get("name") in sidecars and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if terminated is not None:
                self.reason = "Init:" + (terminated.get("reason") or _exit_text(terminated))
            elif waiting is not None and waiting.get("reason") and waiting["reason"] != "PodInitializing":
                self.reason = "Init:" + waiting["reason"]
            else:
                self.reason = f"Init:{i}/{total}"
            return True
        return False

    def _read_containers(self, status: Object) -> None:
        """Add the states of the app containers to `reason`, `ready`, `restarts` and `last_restart`.

        The restarts of init containers that are not sidecars are dropped. The first container determines the reason. If
        it has completed, so does the first one that has failed, unless the pod is ready.
        """
        self.restarts, self.last_restart = self._sidecar_restarts, self._sidecar_last
        running = False
        error = ""
        for container in reversed(status.get("containerStatuses") or []):
            self.restarts += container.get("restartCount", 0)
            self.last_restart = max(self.last_restart, _finished(container.get("lastState")))
            state = container.get("state") or {}
            waiting, terminated = state.get("waiting"), state.get("terminated")
            if waiting is not None and waiting.get("reason"):
                self.reason = waiting["reason"]
            elif terminated is not None:
                self.reason = terminated.get("reason") or _exit_text(terminated)
                if terminated.get("exitCode", 0) != 0:
                    error = self.reason
            elif container.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and _ready(status):
                self.reason = "Running"
            else:
                self.reason = error or ("NotReady" if running else self.reason)

    @property
    def restarts_cell(self) -> TimedCell | str:
        """The number of restarts, followed by the age of the last one ("3 (5m ago)") if it is known."""
        if self.restarts and self.last_restart:
            return since(self.last_restart, f"{self.restarts} (", " ago)")
        return str(self.restarts)


def _exit_text(terminated: Object) -> str:
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _finished(state: Object | None) -> str:
    """Return the RFC 3339 time when a container terminated, or "" if the state is not `terminated`."""
    return str(((state or {}).get("terminated") or {}).get("finishedAt") or "")


def _initialized(status: Object) -> bool:
    return any(c.get("type") == "Initialized" and c.get("status") == "True" for c in status.get("conditions") or [])


def _ready(status: Object) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or [])


def pod_conditions(pod: Object) -> list[Object]:
    """Return the condition Completed for the Table row of a succeeded or failed pod, or [].

    `kubectl get` can hide such rows. The list must not be changed.
    """
    return {"Succeeded": _SUCCEEDED, "Failed": _FAILED}.get(status_of(pod).get("phase", ""), [])


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Ready"),
        Column("Status"),
        Column("Restarts"),
        AGE,
        Column("IP", priority=1),
        Column("Node", priority=1),
        Column("Nominated Node", priority=1),
        Column("Readiness Gates", priority=1),
    ),
    pod_row,
    pod_conditions,
    reads=PodFields,
)
