"""Checks that keep a pod away from its node: namespaces, paths, ports, probes of the host, Windows host processes.

Upstream: k8s.io/pod-security-admission/policy (check_hostNamespaces.go, check_hostPathVolumes.go, check_hostPorts.go,
check_hostProbesAndhostLifecycle.go, check_windowsHostProcess.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tetrapod.core.podsecurity.check import Check, Violation, containers, containers_named, names, plural, quoted, security_option, setters
from tetrapod.core.podsecurity.policy import BASELINE
from tetrapod.machinery.gvk import Object


def _namespaces(metadata: Object, spec: Object) -> Violation | None:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def _path_volumes(metadata: Object, spec: Object) -> Violation | None:
    bad = names(volume for volume in spec.get("volumes") or () if volume.get("hostPath") is not None)
    return Violation("hostPath volumes", f"{plural(bad, 'volume')} {quoted(bad)}") if bad else None


def _ports(metadata: Object, spec: Object) -> Violation | None:
    bad: list[str] = []
    ports: set[str] = set()
    for container in containers(spec):
        if used := {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}:
            bad.append(container.get("name", ""))
            ports |= used
    if not bad:
        return None
    what = f"{plural(ports, 'hostPort')} {', '.join(sorted(ports))}"
    return Violation("hostPort", f"{containers_named(bad)} {plural(bad, 'uses', 'use')} {what}")


def _probes(metadata: Object, spec: Object) -> Violation | None:
    bad: set[str] = set()
    hosts: set[str] = set()
    for container in containers(spec):
        if asked := set(_hosts(container)):
            bad.add(container.get("name", ""))
            hosts |= asked
    if not bad:
        return None
    what = f"{plural(hosts, 'probe or lifecycle host')} {quoted(sorted(hosts))}"
    return Violation("probe or lifecycle host", f"{containers_named(sorted(bad))} {plural(bad, 'uses', 'use')} {what}")


def _hosts(container: Object) -> Iterator[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
        for action in ("httpGet", "tcpSocket"):
            if host := ((handler or {}).get(action) or {}).get("host"):
                yield host


def _windows_process(metadata: Object, spec: Object) -> Violation | None:
    who = setters(_is_host_process(spec), names(filter(_is_host_process, containers(spec))))
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None


def _is_host_process(owner: Object) -> bool:
    return bool((security_option(owner, "windowsOptions") or {}).get("hostProcess"))


CHECKS: Final = (
    Check("hostNamespaces", BASELINE, {0: _namespaces}),
    Check("hostPathVolumes", BASELINE, {0: _path_volumes}),
    Check("hostPorts", BASELINE, {0: _ports}),
    Check("hostProbesAndHostLifecycle", BASELINE, {34: _probes}),
    Check("windowsHostProcess", BASELINE, {0: _windows_process}),
)
