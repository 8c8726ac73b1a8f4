"""Validation of the security contexts of pods and containers.

Upstream: pkg/apis/core/validation/validation.go, ValidateSecurityContext and validatePodSpecSecurityContext.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tetrapod.core.podspec.capabilities import privileged_allowed
from tetrapod.core.podspec.stored import (
    allows_host_network_with_users,
    allows_selinux_policies,
    some_container,
    stored_spec_has,
)
from tetrapod.core.podspec.windows import windows_options
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import known, user_id
from tetrapod.core.validation.paths import descending
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_FS_GROUP_POLICIES: Final = frozenset({"Always", "OnRootMismatch"})
_GROUPS_POLICIES: Final = frozenset({"Merge", "Strict"})
_SELINUX_POLICIES: Final = frozenset({"MountOption", "Recursive"})
_ONLY_RECURSIVE: Final = frozenset({"Recursive"})
_SYSCTL: Final = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_sysctl = re.compile(_SYSCTL).match
_NO_HOST_USERS: Final = "when `hostUsers` is false"
_IPC: Final = frozenset({"kernel.sem"})
_IPC_PREFIXES: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def container_security(context: Object, path: str, host_users: bool) -> list[FieldError]:
    """Validate the security context of a container.

    - `privileged` must be allowed (--allow-privileged).
    - User and group ids are in range, and the profiles of seccomp and AppArmor and the Windows options are valid.
    - procMount Unmasked requires a user namespace of the pod.
    - allowPrivilegeEscalation cannot be false for a privileged container or one that adds CAP_SYS_ADMIN.

    Args:
        path: the field path of the security context, for the errors.
        host_users: whether the pod uses the host's user namespace (hostUsers is not false).
    """
    errors: list[FieldError] = []
    if context.get("privileged") and not privileged_allowed():
        errors.append(field.forbidden(f"{path}.privileged", "disallowed by cluster policy"))
    errors += _ids(context, ("runAsUser", "runAsGroup"), path)
    if (mount := context.get("procMount")) is not None:
        errors += known(mount, ("Default", "Unmasked"), f"{path}.procMount")
        if host_users and mount == "Unmasked":
            errors.append(field.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(field.invalid(path, internal("SecurityContext", context), text))
        if _adds_sys_admin(context) and not stored_spec_has(_has_sys_admin):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(field.invalid(path, internal("SecurityContext", context), text))
    errors += windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    return errors + app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _adds_sys_admin(context: Object) -> bool:
    return "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ())


@some_container
def _has_sys_admin(container: Object) -> bool:
    """Return whether a container adds CAP_SYS_ADMIN, and allowPrivilegeEscalation is not true."""
    context = container.get("securityContext") or {}
    return not context.get("allowPrivilegeEscalation") and _adds_sys_admin(context)


def pod_security(context: Object | None, spec: Object, path: str) -> list[FieldError]:
    """Validate the security context of a pod, which may be None.

    User and group ids are in range, and policies are known values. The profiles of seccomp and AppArmor and the Windows
    options are valid. Sysctls have unique, valid names, and none is in a namespace of the host that the pod shares.

    Args:
        spec: the pod spec, whose host namespaces exclude some sysctls.
        path: the field path of the security context, for the errors.
    """
    if not context:
        return []
    errors = _ids(context, ("fsGroup", "runAsUser", "runAsGroup"), path)
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        errors += user_id(group, f"{path}.supplementalGroups[{i}]")
    errors += _sysctls(context.get("sysctls") or [], spec, f"{path}.sysctls")
    if (policy := context.get("fsGroupChangePolicy")) is not None:
        errors += known(policy, _FS_GROUP_POLICIES, f"{path}.fsGroupChangePolicy")
    errors += _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    errors += windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    errors += app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    if (policy := context.get("supplementalGroupsPolicy")) is not None:
        errors += known(policy, _GROUPS_POLICIES, f"{path}.supplementalGroupsPolicy")
    if (policy := context.get("seLinuxChangePolicy")) is not None:
        policies = _SELINUX_POLICIES if allows_selinux_policies() else _ONLY_RECURSIVE
        errors += known(policy, policies, f"{path}.seLinuxChangePolicy")
    return errors


def _ids(context: Object, names: tuple[str, ...], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in names:
        if (value := context.get(name)) is not None:
            errors += user_id(value, f"{path}.{name}")
    return errors


def _seccomp(profile: Object | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    errors: list[FieldError] = []
    if not kind:
        errors.append(field.required(f"{path}.type", "type is required when seccompProfile is set"))
    else:
        errors += known(kind, _PROFILES, f"{path}.type")
    if kind == "Localhost":
        if local is None:
            errors.append(field.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            errors += descending(local, f"{path}.localhostProfile")
    elif local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        errors.append(
            field.invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")
        )
    return errors


def app_armor(profile: Object | None, path: str) -> list[FieldError]:
    """Validate the appArmorProfile of a security context, which may be None.

    `type` is required and known. localhostProfile is set for the type Localhost only; it is not empty, not padded with
    white space and at most 4095 characters long.

    Args:
        path: the field path of the profile, for the errors.
    """
    if profile is None:
        return []
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    at = f"{path}.localhostProfile"
    if not kind:
        return [field.required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [field.not_supported(f"{path}.type", kind, _PROFILES)]
    if kind != "Localhost":
        return [] if local is None else [field.invalid(at, local, "can only be set when AppArmor type is Localhost")]
    if local is None:
        return [field.required(at, "must be set when AppArmor type is Localhost")]
    errors: list[FieldError] = []
    if local.strip() != local:
        errors.append(field.invalid(at, local, "must not be padded with whitespace"))
    elif not local:
        errors.append(field.required(at, "must be set when AppArmor type is Localhost"))
    if len(local) > 4095:
        errors.append(field.too_long(at, 4095))
    return errors


def _sysctls(listed: list[Object], spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, sysctl in enumerate(listed):
        at, name = f"{path}[{i}].name", sysctl.get("name") or ""
        if not name:
            errors.append(field.required(at))
        elif len(name) > 253 or not _sysctl(name):
            errors.append(field.invalid(at, name, f"must have at most 253 characters and match regex {_SYSCTL}"))
        elif name in seen:
            errors.append(field.duplicate(at, name))
        seen.add(name)
        shared = _shared_namespace(name, spec)
        if shared and not stored_spec_has(_has_shared_sysctls):
            errors.append(field.invalid(at, name, f"may not be specified when '{shared}' is true"))
    return errors


def _shared_namespace(sysctl: str, spec: Object) -> str:
    """Return the field by which a pod shares the namespace of a sysctl with its host; "" if it does not."""
    name = {"net": "hostNetwork", "ipc": "hostIPC"}.get(_namespace_of(sysctl), "")
    return name if name and spec.get(name) else ""


def _has_shared_sysctls(spec: Object) -> bool:
    listed = (spec.get("securityContext") or {}).get("sysctls") or ()
    return any(_shared_namespace(sysctl.get("name") or "", spec) for sysctl in listed)


def _namespace_of(sysctl: str) -> str:
    """Return the kernel namespace of a sysctl, "ipc" or "net", or "" for another one.

    The parts of the name are separated by dots or slashes.
    """
    first = min((i for i in (sysctl.find("."), sysctl.find("/")) if i >= 0), default=-1)
    name = sysctl.replace("/", ".") if first >= 0 and sysctl[first] == "/" else sysctl
    if name in _IPC or name.startswith(_IPC_PREFIXES):
        return "ipc"
    return "net" if name.startswith("net.") else ""


def all_containers(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    """Yield every container of a pod spec with its field path: init containers, containers, ephemeral containers.

    Upstream: VisitContainersWithPath
    """
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{i}]"


def host_users(spec: Object, path: str) -> list[FieldError]:
    """Reject host namespaces and block devices of a pod with its own user namespace (hostUsers: false).

    The host namespaces are hostPID, hostIPC and, without a feature gate, hostNetwork. The capital letters in the paths
    are upstream's.

    Args:
        path: the field path of the spec, for the errors.
    """
    if spec.get("hostUsers") is not False:
        return []
    network = () if allows_host_network_with_users() else (("hostNetwork", "hostNetwork"),)
    named = (*network, ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    errors = [field.forbidden(f"{path}.{shown}", _NO_HOST_USERS) for key, shown in named if spec.get(key)]
    raw = [at for container, at in all_containers(spec, path) if container.get("volumeDevices")]
    if raw and stored_spec_has(_has_users_and_devices):
        return errors
    return errors + [field.forbidden(f"{at}.volumeDevices", _NO_HOST_USERS) for at in raw]


def _has_users_and_devices(spec: Object) -> bool:
    return spec.get("hostUsers") is False and any(
        container.get("volumeDevices") for container, _ in all_containers(spec, "")
    )
