"""Checks that isolate a pod from its node: host namespaces, paths, ports, probe hosts, Windows host processes.

Upstream: k8s.io/pod-security-admission/policy (check_hostNamespaces.go, check_hostPathVolumes.go, check_hostPorts.go,
check_hostProbesAndhostLifecycle.go, check_windowsHostProcess.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tetrapod.core.podsecurity.check import (
    Check,
    Violation,
    containers,
    containers_named,
    names,
    plural,
    quoted,
    security_option,
    setters,
)
from tetrapod.core.podsecurity.policy import BASELINE
from tetrapod.machinery.gvk import Object


def _namespaces(metadata: Object, spec: Object) -> Violation | None:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def _path_volumes(metadata: Object, spec: Object) -> Violation | None:
    violating = names(volume for volume in spec.get("volumes") or () if volume.get("hostPath") is not None)
    return Violation("hostPath volumes", f"{plural(violating, 'volume')} {quoted(violating)}") if violating else None


def _ports(metadata: Object, spec: Object) -> Violation | None:
    violating: list[str] = []
    ports: set[str] = set()
    for container in containers(spec):
        if host_ports := {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}:
            violating.append(container.get("name", ""))
            ports |= host_ports
    if not violating:
        return None
    port_list = f"{plural(ports, 'hostPort')} {', '.join(sorted(ports))}"
    return Violation("hostPort", f"{containers_named(violating)} {plural(violating, 'uses', 'use')} {port_list}")


def _probes(metadata: Object, spec: Object) -> Violation | None:
    violating: set[str] = set()
    hosts: set[str] = set()
    for container in containers(spec):
        if container_hosts := set(_hosts(container)):
            violating.add(container.get("name", ""))
            hosts |= container_hosts
    if not violating:
        return None
    host_list = f"{plural(hosts, 'probe or lifecycle host')} {quoted(sorted(hosts))}"
    return Violation(
        "probe or lifecycle host",
        f"{containers_named(sorted(violating))} {plural(violating, 'uses', 'use')} {host_list}",
    )


def _hosts(container: Object) -> Iterator[str]:
    """Yield the hosts that the container's probes and lifecycle hooks name."""
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
        for action in ("httpGet", "tcpSocket"):
            if host := ((handler or {}).get(action) or {}).get("host"):
                yield host


def _windows_process(metadata: Object, spec: Object) -> Violation | None:
    subject = setters(_is_host_process(spec), names(filter(_is_host_process, containers(spec))))
    return (
        Violation("hostProcess", f"{subject} must not set securityContext.windowsOptions.hostProcess=true")
        if subject
        else None
    )


def _is_host_process(owner: Object) -> bool:
    return bool((security_option(owner, "windowsOptions") or {}).get("hostProcess"))


CHECKS: Final = (
    Check("hostNamespaces", BASELINE, {0: _namespaces}),
    Check("hostPathVolumes", BASELINE, {0: _path_volumes}),
    Check("hostPorts", BASELINE, {0: _ports}),
    Check("hostProbesAndHostLifecycle", BASELINE, {34: _probes}),
    Check("windowsHostProcess", BASELINE, {0: _windows_process}),
)
