"""Metrics of the process: its build, threads, tasks and network.

Upstream: component-base/metrics/version.go; Go's own collector.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter as Counted
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.configuration.effective_version import effective_version
from tetrapod.generic.configuration.feature_gates import gate_states
from tetrapod.generic.configuration.version import KUBERNETES, version_info
from tetrapod.generic.metrics.counters import CounterFunction, GaugeFunction
from tetrapod.generic.metrics.metric import Metric, stability
from tetrapod.generic.metrics.registry import BEFORE_SCRAPE, DISABLED, every, hidden_names

_BUILD: Final = {
    "major": "major",
    "minor": "minor",
    "git_version": "gitVersion",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "build_date": "buildDate",
    "go_version": "goVersion",
    "compiler": "compiler",
    "platform": "platform",
}
_loops: Final[list[asyncio.AbstractEventLoop]] = []


def collectors() -> list[Any]:
    """Return new collectors of prometheus-client for the process and for Python."""
    from prometheus_client import PlatformCollector, ProcessCollector

    return [ProcessCollector(registry=None), PlatformCollector(registry=None)]


async def scraped() -> tuple[list[Metric], list[Any]]:
    """Return the metrics of `/metrics`, and the collectors of prometheus-client (`collectors()`), for one scrape.

    The functions in BEFORE_SCRAPE, which update metrics such as the size of the store, are awaited first.
    """
    register(asyncio.get_running_loop())
    for ask in BEFORE_SCRAPE:
        await ask()
    return every(), collectors()


def _tasks() -> float:
    """Return the number of tasks of the event loop that `register` set; 0 if it set none or the loop is closed.

    Scrapes are rendered in a thread. If a task is created at the same time, the tasks cannot be counted and the result
    is 1.
    """
    try:
        return float(sum(len(asyncio.all_tasks(loop)) for loop in _loops if not loop.is_closed()))
    except RuntimeError:  # a task was created at the same time
        return float(len(_loops))


def _effective() -> tuple[str, str]:
    """Return the emulated release and the minimum compatibility version, such as `1.37` and `1.36`."""
    version = effective_version()
    emulated, oldest = (f"{major}.{minor}" for major, minor in (version.emulated, version.min_compatibility))
    return emulated, oldest


def register(loop: asyncio.AbstractEventLoop) -> None:
    """Make this the one event loop whose tasks the metrics count; it replaces an earlier one."""
    if loop not in _loops:
        _loops[:] = [loop]


GaugeFunction(
    "kubernetes_build_info",
    "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, "
    "Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    tuple(_BUILD),
    lambda: [(tuple(str(version_info()[key]) for key in _BUILD.values()), 1.0)],
)
GaugeFunction(
    "version_info",
    "Provides the compatibility version info of the component. The component label is the name of the component, "
    "usually kube, but is relevant for aggregated-apiservers.",
    ("component", "binary", "emulation", "min_compat"),
    lambda: [(("kube", KUBERNETES, *_effective()), 1.0)],
)
GaugeFunction(
    "kubernetes_feature_enabled",
    "This metric records the data about the stage and enablement of a k8s feature.",
    ("name", "stage"),
    lambda: [((name, "" if stage == "GA" else stage), float(enabled)) for name, stage, enabled in gate_states()],
)
GaugeFunction("go_threads", "Number of OS threads created.", (), lambda: [((), float(threading.active_count()))])
# Dashboards of Go servers use this metric; tasks are the closest equivalent of goroutines.
GaugeFunction("go_goroutines", "Number of goroutines that currently exist.", (), lambda: [((), _tasks())])


def _octets() -> dict[str, float]:
    """Return the IpExt counters of the process's network namespace by name, as Go's collector reads them.

    The result is empty if they cannot be read.
    """
    try:
        lines = Path("/proc/self/net/netstat").read_text("utf-8").splitlines()
    except OSError:
        return {}
    heads = next((line.split() for line in lines if line.startswith("IpExt:")), [])
    values = next((line.split() for line in reversed(lines) if line.startswith("IpExt:")), [])
    return {name: float(value) for name, value in zip(heads[1:], values[1:], strict=False)}


def _network(name: str) -> list[tuple[tuple[str, ...], float]]:
    octets = _octets().get(name)
    return [] if octets is None else [((), octets)]


def _address_space() -> list[tuple[tuple[str, ...], float]]:
    """Return the limit of the process's address space in bytes as a sample; none where the system has no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    return [((), float(resource.getrlimit(resource.RLIMIT_AS)[0] % 2**64))]


def _levels() -> list[tuple[tuple[str, ...], float]]:
    levels = Counted(stability(metric.name) for metric in every())
    return [((level, ""), float(count)) for level, count in sorted(levels.items()) if level]


CounterFunction(
    "process_network_receive_bytes_total",
    "Number of bytes received by the process over the network.",
    (),
    lambda: _network("InOctets"),
)
CounterFunction(
    "process_network_transmit_bytes_total",
    "Number of bytes sent by the process over the network.",
    (),
    lambda: _network("OutOctets"),
)
GaugeFunction(
    "process_virtual_memory_max_bytes",
    "Maximum amount of virtual memory available in bytes.",
    (),
    _address_space,
)
CounterFunction(
    "registered_metrics_total",
    "The count of registered metrics broken by stability level and deprecation version.",
    ("stability_level", "deprecated_version"),
    _levels,
)
CounterFunction("hidden_metrics_total", "The count of hidden metrics.", (), lambda: [((), float(len(hidden_names())))])
CounterFunction("disabled_metrics_total", "The count of disabled metrics.", (), lambda: [((), float(len(DISABLED)))])
