"""Validation of regular, init and ephemeral containers.

All have rules in common: name, image, ports, environment, mounts, devices, pull policy, resources and security context.

Upstream: pkg/apis/core/validation/validation.go, validateContainers, validateInitContainers and
validateEphemeralContainers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tetrapod.core.podspec import environment, handlers
from tetrapod.core.podspec.mounts import devices, mounts
from tetrapod.core.podspec.resources import container_resources
from tetrapod.core.podspec.security import container_security
from tetrapod.core.podspec.stored import allows_restart_rules, allows_restarts_of_all, stored_spec_has
from tetrapod.core.podspec.volume_sources import PULL_POLICIES
from tetrapod.core.validation.names import dns_label, known, one_of, port_number
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_valid_port_name

PROTOCOLS: Final = frozenset({"TCP", "UDP", "SCTP"})
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESIZABLE: Final = frozenset({"cpu", "memory"})
_RESTARTS: Final = "RestartContainer"
_RESIZE_POLICIES: Final = frozenset({"NotRequired", _RESTARTS})
_RESTART_POLICIES: Final = frozenset({"Always", "OnFailure", "Never"})
_ONLY_ALWAYS: Final = frozenset({"Always"})
_RULE_OPERATORS: Final = frozenset({"In", "NotIn"})
_NO_POLICY: Final = "must specify restartPolicy when restart rules are used"
_EPHEMERAL_NO: Final = "cannot be set for an Ephemeral Container"
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


@dataclass(frozen=True, slots=True)
class PodContext:
    """The settings of a pod that the validation of its containers depends on.

    Attributes:
        volumes: the pod's valid volumes by name.
        claims: the names in spec.resourceClaims.
        grace: terminationGracePeriodSeconds.
        restart_policy: spec.restartPolicy, or "".
        host_users: whether the pod uses the host's user namespace (hostUsers is not false).
        system: spec.os.name; None if spec.os is not set.
    """

    volumes: dict[str, Object]
    claims: Collection[str]
    grace: int | None
    restart_policy: str
    host_users: bool
    system: str | None


def containers(listed: list[Object], pod_context: PodContext, path: str) -> list[FieldError]:
    """Return the errors of the regular containers of a pod, of which there must be at least one.

    Beside the common rules (see the module), names are unique, host ports do not conflict, and lifecycle hooks, probes
    and restart rules are valid.

    Args:
        listed: the containers.
        pod_context: the facts about the pod on which the rules depend.
        path: the field path of the list, for errors.
    """
    if not listed:
        return [field.required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, container in enumerate(listed):
        if field.end_early(errors):
            break
        at = f"{path}[{i}]"
        errors += _common(container, pod_context, at)
        name = container.get("name") or ""
        if name in seen:
            errors.append(field.duplicate(f"{at}.name", name))
        seen.add(name)
        errors += handlers.lifecycle_and_probes(container, pod_context.grace, pod_context.system, at)
        policy = container.get("restartPolicy")
        if (policy is not None or container.get("restartPolicyRules")) and allows_restart_rules():
            errors += _restart_rules(container, at)
        elif policy is not None:
            errors.append(field.forbidden(f"{at}.restartPolicy", "may not be set for non-init containers"))
    return errors + host_port_conflicts(listed, path)


def init_containers(
    listed: list[Object], regular: list[Object], pod_context: PodContext, path: str
) -> list[FieldError]:
    """Validate init containers. Only those with restartPolicy Always (sidecars) may have probes and lifecycle hooks.

    Beside the common rules (see the module), names are unique, host ports of one container do not conflict, and restart
    rules are valid.

    Args:
        listed: the init containers.
        regular: the pod's regular containers, whose names must not be used again.
        pod_context: the facts about the pod on which the rules depend.
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    seen = {c.get("name") or "" for c in regular}
    for i, container in enumerate(listed):
        if field.end_early(errors):
            break
        at = f"{path}[{i}]"
        errors += _common(container, pod_context, at)
        errors += _restart_of_init_container(container, at)
        name = container.get("name") or ""
        if name in seen:
            errors.append(field.duplicate(f"{at}.name", name))
        elif name:
            seen.add(name)
        errors += host_port_conflicts([container], path)
        if container.get("restartPolicy") == "Always":
            errors += handlers.lifecycle_and_probes(container, pod_context.grace, pod_context.system, at)
        else:
            errors += handlers.no_lifecycle_or_probes(container, at)
            errors += _no_restarting_resize(container, at)
    return errors


def _restart_of_init_container(container: Object, path: str) -> list[FieldError]:
    """Validate restart policy and restart rules of an init container, which depend on two feature gates.

    Args:
        path: the field path of the container, for the errors.
    """
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules")
    if policy is None:
        return [field.required(f"{path}.restartPolicy", _NO_POLICY)] if rules else []
    if not allows_restart_rules():
        return known(policy, _ONLY_ALWAYS, f"{path}.restartPolicy")
    if policy == "Always" and not allows_restarts_of_all():
        text = "restartPolicyRules are not allowed for init containers with restart policy Always"
        return [field.forbidden(f"{path}.restartPolicyRules", text)] if rules else []
    return _restart_rules(container, path)


def _no_restarting_resize(container: Object, path: str) -> list[FieldError]:
    """Reject resize policies of an init container that is not a sidecar if they restart it.

    Args:
        path: the field path of the container, for the errors.
    """
    text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    errors = [
        field.invalid(f"{path}.resizePolicy[{i}].restartPolicy", policy["restartPolicy"], text)
        for i, policy in enumerate(container.get("resizePolicy") or ())
        if policy.get("restartPolicy") == _RESTARTS
    ]
    return [] if errors and stored_spec_has(_has_restarting_resize) else errors


def _has_restarting_resize(spec: Object) -> bool:
    return any(
        policy.get("restartPolicy") == _RESTARTS
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") != "Always"
        for policy in container.get("resizePolicy") or ()
    )


def ephemeral_containers(
    listed: list[Object], regular: list[Object], init: list[Object], pod_context: PodContext, path: str
) -> list[FieldError]:
    """Validate ephemeral containers, which may not set ports, resources, probes or lifecycle hooks.

    Beside the common rules (see the module), names are unique, targetContainerName names another container of the pod,
    and mounts have no subPath and no subPathExpr.

    Args:
        listed: the ephemeral containers.
        regular: the pod's regular containers. They and `init` must not have the same names, and can be targets.
        init: the pod's init containers.
        pod_context: the facts about the pod on which the rules depend.
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    others = {c.get("name") or "" for c in (*regular, *init)}
    seen = set(others)
    for i, container in enumerate(listed):
        if field.end_early(errors):
            break
        at = f"{path}[{i}]"
        errors += _common(container, pod_context, at)
        errors += image_padding(container, at)
        name, target = container.get("name") or "", container.get("targetContainerName") or ""
        if name in seen:
            errors.append(field.duplicate(f"{at}.name", name))
        seen.add(name)
        if target and target not in others:
            errors.append(field.not_found(f"{at}.targetContainerName", target))
        errors += [field.forbidden(f"{at}.{key}", _EPHEMERAL_NO) for key in _NOT_EPHEMERAL if _is_set(container, key)]
        for j, mount in enumerate(container.get("volumeMounts") or ()):
            errors += [
                field.forbidden(f"{at}.volumeMounts[{j}].{key}", _EPHEMERAL_NO)
                for key in ("subPath", "subPathExpr")
                if mount.get(key)
            ]
    return errors


def _is_set(container: Object, name: str) -> bool:
    """Return whether a field of a container differs from its Go zero value.

    Upstream, `resources` is a struct, and all other fields are pointers or slices.
    """
    value = container.get(name)
    return any(part is not None for part in (value or {}).values()) if name == "resources" else value is not None


def image_padding(container: Object, path: str) -> list[FieldError]:
    """Reject an image with leading or trailing whitespace.

    Args:
        path: the field path of the container, for the errors.
    """
    image = container.get("image") or ""
    return (
        []
        if image == image.strip()
        else [field.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]
    )


def _common(container: Object, pod_context: PodContext, path: str) -> list[FieldError]:
    get = container.get
    errors: list[FieldError] = []
    if name := get("name"):
        errors += dns_label(name, f"{path}.name")
    else:
        errors.append(field.required(f"{path}.name"))
    if not get("image"):
        errors.append(field.required(f"{path}.image"))
    if (policy := get("terminationMessagePolicy")) != "File":
        errors += one_of(policy, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    if listed := get("ports"):
        errors += _ports(listed, f"{path}.ports")
    if env := get("env"):
        errors += environment.variables(env, f"{path}.env")
    if env_from := get("envFrom"):
        errors += environment.sources(env_from, f"{path}.envFrom")
    mounted, raw = get("volumeMounts") or [], get("volumeDevices") or []
    if mounted:
        errors += mounts(mounted, raw, pod_context.volumes, container, f"{path}.volumeMounts")
    if raw:
        errors += devices(raw, mounted, pod_context.volumes, f"{path}.volumeDevices")
    errors += one_of(get("imagePullPolicy"), PULL_POLICIES, f"{path}.imagePullPolicy")
    if resources := get("resources"):
        errors += container_resources(resources, pod_context.claims, f"{path}.resources")
    if policies := get("resizePolicy"):
        errors += _resize_policy(policies, pod_context.restart_policy, f"{path}.resizePolicy")
    if (context := get("securityContext")) is not None:
        errors += container_security(context, f"{path}.securityContext", pod_context.host_users)
    return errors


def _ports(ports: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at = f"{path}[{i}]"
        if name := port.get("name"):
            if texts := is_valid_port_name(name):
                errors += [field.invalid(f"{at}.name", name, text) for text in texts]
            elif name in seen:
                errors.append(field.duplicate(f"{at}.name", name))
            else:
                seen.add(name)
        number = port.get("containerPort") or 0
        errors += port_number(number, f"{at}.containerPort") if number else [field.required(f"{at}.containerPort")]
        if host := port.get("hostPort"):
            errors += port_number(host, f"{at}.hostPort")
        errors += one_of(port.get("protocol"), PROTOCOLS, f"{at}.protocol")
    return errors


def host_port_conflicts(listed: list[Object], path: str) -> list[FieldError]:
    """Reject container ports whose protocol, host IP and host port occurred earlier in the list of containers.

    Args:
        path: the field path of the list.
    """
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, container in enumerate(listed):
        for j, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in seen:
                errors.append(field.duplicate(f"{path}[{i}].ports[{j}].hostPort", key))
            seen.add(key)
    return errors


def _resize_policy(policies: list[Object], restart_policy: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            errors.append(field.duplicate(f"{path}[{i}]", name))
        seen.add(name)
        errors += one_of(name, _RESIZABLE, path) + one_of(restart, _RESIZE_POLICIES, path)
        if restart_policy == "Never" and restart != "NotRequired":
            errors.append(field.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
    return errors


def _restart_rules(container: Object, path: str) -> list[FieldError]:
    """Validate a container's restartPolicy, which is required here, and its restartPolicyRules.

    There are at most 20 rules, each with a known action and with exitCodes: a known operator and at most 255 values.

    Args:
        path: the field path of the container, for the errors.

    Upstream: pkg/apis/core/validation/validation.go, validateContainerRestartPolicy
    """
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    errors: list[FieldError] = []
    if policy is None:
        errors.append(field.required(f"{path}.restartPolicy", _NO_POLICY))
    else:
        errors += known(policy, _RESTART_POLICIES, f"{path}.restartPolicy")
    if len(rules) > 20:
        errors.append(field.too_many(f"{path}.restartPolicyRules", len(rules), 20))
    actions = ["Restart", "RestartAllContainers"] if rules and allows_restarts_of_all() else ["Restart"]
    for i, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{i}]"
        if rule.get("action") not in actions:
            errors.append(field.not_supported(f"{at}.action", rule.get("action") or "", actions))
        codes = rule.get("exitCodes")
        if codes is None:
            errors.append(field.required(f"{at}.exitCodes", "must be specified"))
            continue
        errors += known(codes.get("operator") or "", _RULE_OPERATORS, f"{at}.exitCodes.operator")
        if len(codes.get("values") or ()) > 255:
            errors.append(field.too_many(f"{at}.exitCodes.values", len(codes["values"]), 255))
    return errors
