"""Validation of probes and lifecycle hooks of containers.

Upstream: pkg/apis/core/validation/validation.go, validateProbe and validateHandler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tetrapod.core.validation.names import errors_from, known, not_negative, port_number, port_number_or_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_http_header_name

_PROBE: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_NUMBERS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_ONLY_ALWAYS: Final = "may not be set for init containers without restartPolicy=Always"
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS: Final = ("postStart", "preStop")
HTTP1: Final = "HTTP1"
_HTTP2: Final = "HTTP2"
_GRPC_MODES: Final = ("Plaintext", "TLS")
_SIGNALS_OF_WINDOWS: Final = frozenset({"SIGKILL", "SIGTERM"})
_STANDARD_SIGNALS: Final = """
ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN
TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ
"""
_REAL_TIME_SIGNALS: Final = (
    "RTMIN",
    *(f"RTMIN+{number}" for number in range(1, 16)),
    *(f"RTMAX-{number}" for number in range(1, 15)),
    "RTMAX",
)
_SIGNALS_OF_LINUX: Final = frozenset(f"SIG{name}" for name in (*_STANDARD_SIGNALS.split(), *_REAL_TIME_SIGNALS))


def http_actions(container: Object) -> Iterator[Object]:
    """Yield the field `httpGet` of each probe and lifecycle hook of a container that has one."""
    lifecycle = container.get("lifecycle") or {}
    for owner, names in ((container, PROBES), (lifecycle, HOOKS)):
        for name in names:
            if (handler := owner.get(name)) is not None and (action := handler.get("httpGet")) is not None:
                yield action


def lifecycle_and_probes(container: Object, grace: int | None, system: str | None, path: str) -> list[FieldError]:
    """Validate the lifecycle hooks, the stop signal and the probes of a container.

    Each has exactly one handler, such as exec or httpGet, with valid fields. Numbers of a probe are not negative, and
    successThreshold is 1 except for readiness probes, which may not set terminationGracePeriodSeconds.

    Args:
        grace: the pod's terminationGracePeriodSeconds, which limits the duration of sleep hooks; None sets no
            limit.
        system: the pod's operating system, which determines the stop signals; None if it is not set.
        path: the field path of the container, for the errors.
    """
    errors: list[FieldError] = []
    if (lifecycle := container.get("lifecycle")) is not None:
        errors += _lifecycle(lifecycle, grace, system, f"{path}.lifecycle")
    for name in PROBES:
        if (probe := container.get(name)) is not None:
            errors += _probe(probe, name, grace, f"{path}.{name}")
    return errors


def no_lifecycle_or_probes(container: Object, path: str) -> list[FieldError]:
    """Reject lifecycle hooks and probes of an init container that runs to completion.

    Args:
        path: the field path of the container, for the errors.
    """
    return [
        field.forbidden(f"{path}.{name}", _ONLY_ALWAYS)
        for name in ("lifecycle", *PROBES)
        if container.get(name) is not None
    ]


def _lifecycle(lifecycle: Object, grace: int | None, system: str | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in HOOKS:
        if (hook := lifecycle.get(name)) is not None:
            errors += _handler(hook, _HOOK, grace, f"{path}.{name}")
    if (signal := lifecycle.get("stopSignal")) is not None:
        errors += _stop_signal(signal, system, f"{path}.stopSignal")
    return errors


def _stop_signal(signal: str, system: str | None, path: str) -> list[FieldError]:
    if system is None:
        return [field.forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    allowed = {"linux": _SIGNALS_OF_LINUX, "windows": _SIGNALS_OF_WINDOWS}.get(system)
    return [] if allowed is None else known(signal, allowed, path)


def _probe(probe: Object, kind: str, grace: int | None, path: str) -> list[FieldError]:
    errors = _handler(probe, _PROBE, grace, path)
    for name in _NUMBERS:
        errors += not_negative(probe.get(name), f"{path}.{name}")
    period = probe.get("terminationGracePeriodSeconds")
    if period is not None and period <= 0:
        errors.append(field.invalid(f"{path}.terminationGracePeriodSeconds", period, "must be greater than 0"))
    if kind == "readinessProbe":
        if period is not None:
            errors.append(
                field.invalid(f"{path}.terminationGracePeriodSeconds", period, "must not be set for readinessProbes")
            )
    elif probe.get("successThreshold", 0) != 1:
        errors.append(field.invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def _handler(handler: Object, kinds: tuple[str, ...], grace: int | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for kind in kinds:
        if (action := handler.get(kind)) is None:
            continue
        count += 1
        if count > 1:
            errors.append(field.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
        else:
            errors += _action(kind, action, grace, f"{path}.{kind}")
    return errors if count else [field.required(path, "must specify a handler type")]


def _action(kind: str, action: Object, grace: int | None, path: str) -> list[FieldError]:
    match kind:
        case "exec":
            return [] if action.get("command") else [field.required(f"{path}.command")]
        case "httpGet":
            return _http_get(action, path)
        case "tcpSocket":
            return port_number_or_name(action.get("port"), f"{path}.port")
        case "grpc":
            return _grpc(action, path)
        case _:
            return _sleep(action.get("seconds") or 0, grace, path)


def _http_get(action: Object, path: str) -> list[FieldError]:
    errors = [] if action.get("path") else [field.required(f"{path}.path")]
    errors += port_number_or_name(action.get("port"), f"{path}.port")
    errors += known(action.get("scheme") or "", ("HTTP", "HTTPS"), f"{path}.scheme")
    for header in action.get("httpHeaders") or ():
        errors += errors_from(is_http_header_name, header.get("name") or "", f"{path}.httpHeaders")
    if (protocol := action.get("protocol")) is not None:
        errors += _http_protocol(protocol, action, path)
    return errors


def _http_protocol(protocol: str, action: Object, path: str) -> list[FieldError]:
    if protocol not in (HTTP1, _HTTP2):
        return [field.not_supported(f"{path}.protocol", protocol, (HTTP1, _HTTP2))]
    if protocol == _HTTP2 and action.get("scheme") != "HTTP":
        return [field.invalid(f"{path}.protocol", protocol, "is only supported with HTTP (H2C)")]
    if protocol == _HTTP2 and action.get("host"):
        return [field.invalid(f"{path}.host", action["host"], 'must be empty when `protocol` is "HTTP2"')]
    return []


def _grpc(action: Object, path: str) -> list[FieldError]:
    errors = port_number(action.get("port") or 0, f"{path}.port")
    return errors if (mode := action.get("mode")) is None else errors + known(mode, _GRPC_MODES, f"{path}.mode")


def _sleep(seconds: int, grace: int | None, path: str) -> list[FieldError]:
    if grace is None or 0 <= seconds <= grace:
        return []
    return [field.invalid(path, seconds, f"must be non-negative and less than terminationGracePeriodSeconds ({grace})")]
