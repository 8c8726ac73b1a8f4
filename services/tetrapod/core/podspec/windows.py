"""Validation of the fields that are specific to Windows pods, and of those that Windows or Linux pods cannot set.

Upstream: pkg/apis/core/validation/validation.go, validateWindowsSecurityContextOptions, validateWindowsHostProcessPod,
validateOS, validateLinux and validateWindows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tetrapod.core.podspec.capabilities import privileged_allowed
from tetrapod.core.validation.names import errors_from
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain

_GMSA_KIB: Final = 64
_control = re.compile(r"[\x00-\x1f\x7f]").search
_netbios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_domain = re.compile(rf"{_LABEL}(?:\.{_LABEL})*").fullmatch
_bad_user = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_only_dots = re.compile(r"[. ]+").fullmatch
_NOT_ON_WINDOWS: Final = "cannot be set for a windows pod"
_POD_ORDER: Final = (
    *(
        ("securityContext", key)
        for key in ("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy")
    ),
    *(("securityContext", key) for key in ("sysctls", "runAsUser", "runAsGroup", "supplementalGroups")),
    *(("securityContext", key) for key in ("supplementalGroupsPolicy", "seLinuxChangePolicy")),
    *(("", key) for key in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")),
)
_FORBIDDEN_IF_TRUE: Final = frozenset({"sysctls", "hostPID", "hostIPC"})
"""Fields that are rejected only if they are true or not empty; all others are rejected whenever they are set."""
_CONTAINER_ORDER: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_Containers = Iterable[tuple[Object, str]]


def windows_options(options: Object | None, path: str) -> list[FieldError]:
    """Validate windowsOptions of a security context, which may be None.

    gmsaCredentialSpecName is a DNS subdomain, gmsaCredentialSpec is neither empty nor too long, and runAsUserName has
    the form of a Windows user with an optional domain.

    Args:
        path: the field path of windowsOptions, for the errors.
    """
    if options is None:
        return []
    errors: list[FieldError] = []
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        errors += errors_from(is_dns1123_subdomain, name, f"{path}.gmsaCredentialSpecName")
    if (content := options.get("gmsaCredentialSpec")) is not None:
        if not content:
            errors.append(
                field.invalid(f"{path}.gmsaCredentialSpec", content, "gmsaCredentialSpec cannot be an empty string")
            )
        elif len(content.encode()) > _GMSA_KIB * 1024:
            text = f"gmsaCredentialSpec size must be under {_GMSA_KIB} KiB"
            errors.append(field.invalid(f"{path}.gmsaCredentialSpec", content, text))
    if (user := options.get("runAsUserName")) is not None:
        errors += [
            field.invalid(f"{path}.runAsUserName", field.TypedText(user), f"runAsUserName{text}")
            for text in _user_texts(user)
        ]
    return errors


def _user_texts(name: str) -> list[str]:
    if not name:
        return [" cannot be an empty string"]
    if _control(name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    texts = []
    if len(domain) >= 256:
        texts.append("'s Domain length must be under 256 characters")
    if backslash and not _netbios(domain) and not _domain(domain):
        texts.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        texts.append("'s User cannot be empty")
    elif len(user) > 104:
        texts.append("'s User length must not be longer than 104 characters")
    if _only_dots(user):
        texts.append("'s User cannot contain only periods or spaces")
    if _bad_user(user):
        texts.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return texts


def _host_process(context: Object | None) -> bool | None:
    value: bool | None = ((context or {}).get("windowsOptions") or {}).get("hostProcess")
    return value


def host_process(spec: Object, containers: _Containers, path: str) -> list[FieldError]:
    """Validate hostProcess: if one container of the pod is a host process container, all must be.

    Such a pod also needs hostNetwork, and privileged containers must be allowed.

    Args:
        containers: all containers of the pod with their field paths.
        path: the field path of the pod spec, for the errors.
    """
    pod = _host_process(spec.get("securityContext"))
    errors: list[FieldError] = []
    count = host_process_count = 0
    for container, at in containers:
        count += 1
        container_value = _host_process(container.get("securityContext"))
        if pod is not None and container_value is not None and pod != container_value:
            text = f"pod hostProcess value must be identical if both are specified, was {str(pod).lower()}"
            errors.append(field.invalid(f"{at}.securityContext.windowsOptions.hostProcess", container_value, text))
        host_process_count += bool(container_value if container_value is not None else pod)
    if not host_process_count:
        return errors
    if host_process_count != count:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(field.invalid(path, "", text))
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(field.invalid(f"{path}.hostNetwork", False, text))
    if not privileged_allowed():
        errors.append(field.forbidden(path, "hostProcess containers are disallowed by cluster policy"))
    return errors


def operating_system(spec: Object, containers: _Containers, path: str) -> list[FieldError]:
    """Validate spec.os, and reject fields that do not apply to this operating system; without spec.os all is valid.

    Args:
        containers: all containers of the pod with their field paths.
        path: the field path of the pod spec, for the errors.
    """
    if (system := spec.get("os")) is None:
        return []
    name = system.get("name") or ""
    if not name:
        return [field.required(f"{path}.os.name")]
    if name == "linux":
        return _linux(spec, containers, path)
    if name == "windows":
        return _windows(spec, containers, path)
    return [field.not_supported(f"{path}.os", name, ["linux", "windows"])]


def _linux(spec: Object, containers: _Containers, path: str) -> list[FieldError]:
    holders = [(spec.get("securityContext"), path), *((c.get("securityContext"), at) for c, at in containers)]
    return [
        field.forbidden(f"{at}.securityContext.windowsOptions", "windows options cannot be set for a linux pod")
        for context, at in holders
        if (context or {}).get("windowsOptions") is not None
    ]


def _windows(spec: Object, containers: _Containers, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for part, key in _POD_ORDER:
        holder = (spec.get(part) or {}) if part else spec
        value = holder.get(key)
        if value is not None and (value or key not in _FORBIDDEN_IF_TRUE):
            errors.append(field.forbidden(f"{path}.{part}.{key}" if part else f"{path}.{key}", _NOT_ON_WINDOWS))
    for container, at in containers:
        context = container.get("securityContext") or {}
        errors += [
            field.forbidden(f"{at}.securityContext.{k}", _NOT_ON_WINDOWS)
            for k in _CONTAINER_ORDER
            if context.get(k) is not None
        ]
    return errors
