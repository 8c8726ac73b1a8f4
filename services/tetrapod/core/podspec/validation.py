"""Validation of a PodSpec, of a pod or in a pod template.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodSpec.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec import containers, scheduling, windows
from tetrapod.core.podspec.containers import PodContext
from tetrapod.core.podspec.environment import volumes_of_files
from tetrapod.core.podspec.eviction_responders import eviction_responders
from tetrapod.core.podspec.pod_resources import POD_LEVEL_GATE
from tetrapod.core.podspec.resources import container_resources, pod_resources
from tetrapod.core.podspec.security import all_containers, host_users, pod_security
from tetrapod.core.podspec.stored import allows_comparisons
from tetrapod.core.podspec.volumes import volumes
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import (
    address,
    dns_label,
    dns_subdomain,
    errors_from,
    in_range,
    one_of,
    qualified_name,
)
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.names import is_dns1123_subdomain_with_underscore

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_MAX_INT32: Final = 2**31 - 1


def pod_spec(spec: Object, path: str, *, pod: bool, pod_name: str = "", mirror: bool = False) -> list[FieldError]:
    """Validate a pod spec by all rules that need no other object and no stored version of the pod.

    They cover volumes, containers, resources, scheduling, security, DNS and the other fields.

    Args:
        path: the field path of the spec, for errors.
        pod: True for a Pod itself, False for a template; it decides whether host ports are required with hostNetwork.
        pod_name: the pod's name, which begins the names of the claims of its ephemeral volumes; "" in templates.
        mirror: whether the pod is the mirror of a static pod, which cannot have resource claims.
    """
    get = spec.get
    errors: list[FieldError] = []
    if get("terminationGracePeriodSeconds") is None:
        errors.append(field.required(f"{path}.terminationGracePeriodSeconds"))
    volumes_by_name, volume_errors = volumes(get("volumes") or [], pod_name, f"{path}.volumes")
    errors += volume_errors
    claims = get("resourceClaims") or []
    if mirror:
        errors += [field.forbidden("[]", "static pods do not support resource claims") for _ in claims]
    elif claims:
        errors += _claims(claims, f"{path}.resourceClaims")
    names = {c["name"] for c in claims if c.get("name")}
    pod_context = PodContext(
        volumes_by_name,
        names,
        get("terminationGracePeriodSeconds"),
        get("restartPolicy") or "",
        get("hostUsers") is not False,
        None if (os := get("os")) is None else os.get("name") or "",
    )
    regular, init = get("containers") or [], get("initContainers") or []
    errors += containers.containers(regular, pod_context, f"{path}.containers")
    if init:
        errors += containers.init_containers(init, regular, pod_context, f"{path}.initContainers")
    if ephemeral := get("ephemeralContainers"):
        errors += containers.ephemeral_containers(ephemeral, regular, init, pod_context, f"{path}.ephemeralContainers")
    if get("resources") is not None and feature_gates.enabled(POD_LEVEL_GATE):
        errors += pod_resources(spec, f"{path}.resources")
    if get("hostNetwork"):
        errors += _host_network(regular, f"{path}.containers", pod)
    errors += one_of(get("restartPolicy"), RESTART_POLICIES, f"{path}.restartPolicy")
    errors += one_of(get("dnsPolicy"), _DNS_POLICIES, f"{path}.dnsPolicy")
    if selector := get("nodeSelector"):
        errors += validate_labels(selector, f"{path}.nodeSelector")
    errors += pod_security(get("securityContext"), spec, f"{path}.securityContext")
    if get("shareProcessNamespace") and get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(field.invalid(f"{path}.shareProcessNamespace", True, text))
    errors += scheduling.affinity(get("affinity"), f"{path}.affinity")
    errors += _dns_config(spec, f"{path}.dnsConfig")
    for i, gate in enumerate(get("readinessGates") or ()):
        errors += qualified_name(gate.get("conditionType") or "", f"{path}.readinessGates[{i}].conditionType")
    if gates := get("schedulingGates"):
        errors += scheduling.gates(gates, f"{path}.schedulingGates")
    if constraints := get("topologySpreadConstraints"):
        errors += scheduling.spread(constraints, f"{path}.topologySpreadConstraints")
    return errors + _rest(spec, path)


def _rest(spec: Object, path: str) -> list[FieldError]:
    get = spec.get
    errors: list[FieldError] = []
    all_with_paths = list(all_containers(spec, path))
    errors += windows.host_process(spec, all_with_paths, path)
    errors += host_users(spec, path)
    errors += _hostname_override(spec, path)
    for name in ("serviceAccountName", "nodeName"):
        if value := get(name):
            errors += dns_subdomain(value, f"{path}.{name}")
    if (seconds := get("activeDeadlineSeconds")) is not None:
        errors += in_range(seconds, 1, _MAX_INT32, f"{path}.activeDeadlineSeconds")
    for name in ("hostname", "subdomain"):
        if value := get(name):
            errors += dns_label(value, f"{path}.{name}")
    if listed := get("tolerations"):
        errors += scheduling.tolerations(listed, f"{path}.tolerations", compares=allows_comparisons())
    for i, alias in enumerate(get("hostAliases") or ()):
        errors += address(alias.get("ip") or "", f"{path}.hostAliases[{i}].ip")
        for j, name in enumerate(alias.get("hostnames") or ()):
            errors += dns_subdomain(name, f"{path}.hostAliases[{i}].hostnames[{j}]")
    for name in ("priorityClassName", "runtimeClassName"):
        if (value := get(name)) or (value is not None and name == "runtimeClassName"):
            errors += dns_subdomain(value, f"{path}.{name}")
    if (policy := get("preemptionPolicy")) is not None:
        errors += one_of(policy, _PREEMPTION, f"{path}.preemptionPolicy")
    if overhead := get("overhead"):
        errors += container_resources({"limits": overhead}, (), f"{path}.overhead")
    errors += windows.operating_system(spec, all_with_paths, path)
    errors += eviction_responders(spec, path)
    if (group := get("schedulingGroup")) is not None:
        errors += _scheduling_group(group, spec, f"{path}.schedulingGroup")
    return errors + volumes_of_files(spec, all_with_paths)


def _scheduling_group(group: Object, spec: Object, path: str) -> list[FieldError]:
    """Validate the reference of a pod to its PodGroup, which excludes eviction responders.

    Args:
        group: the field spec.schedulingGroup.
        spec: the spec of the pod.
        path: the field path of `group`.
    """
    name, at = group.get("podGroupName"), f"{path}.podGroupName"
    if name is None:
        errors = [field.invalid(at, None, "must specify one of: `podGroupName`")]
    else:
        errors = dns_subdomain(name, at)
    if spec.get("evictionResponders"):
        errors.append(field.forbidden(path, "may not be set when evictionResponders is set"))
    return errors


def _hostname_override(spec: Object, path: str) -> list[FieldError]:
    override = spec.get("hostnameOverride")
    if override is None:
        return []
    at = f"{path}.hostnameOverride"
    errors: list[FieldError] = []
    if spec.get("setHostnameAsFQDN"):
        errors.append(field.forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(field.forbidden(at, "may not be specified when hostNetwork is true"))
    if len(override) > 64:
        errors.append(field.too_long(at, 64))
    return errors + dns_subdomain(override, at)


def _claims(claims: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        at, name = f"{path}[{i}]", claim.get("name") or ""
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if not name:
            errors.append(field.required(f"{at}.name"))
        elif name in seen:
            errors.append(field.duplicate(f"{at}.name", name))
        else:
            errors += dns_label(name, f"{at}.name")
            seen.add(name)
        if direct is not None and template is not None:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(field.invalid(at, internal("PodResourceClaim", claim), text))
        if direct is None and template is None:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(field.invalid(at, internal("PodResourceClaim", claim), text))
        errors += dns_subdomain(direct, f"{at}.resourceClaimName") if direct is not None else []
        errors += dns_subdomain(template, f"{at}.resourceClaimTemplateName") if template is not None else []
    return errors


def _host_network(listed: list[Object], path: str, pod: bool) -> list[FieldError]:
    """Require host ports to equal container ports, because the pod uses the host network.

    A template may leave hostPort unset; in a Pod, defaulting has set it.

    Args:
        listed: the containers.
        path: the field path of the list.
        pod: True for a Pod itself, False for a template.
    """
    errors: list[FieldError] = []
    for i, container in enumerate(listed):
        for j, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort") or 0
            if (pod or host) and host != (port.get("containerPort") or 0):
                text = "must match `containerPort` when `hostNetwork` is true"
                errors.append(field.invalid(f"{path}[{i}].ports[{j}].hostPort", host, text))
    return errors


def _dns_config(spec: Object, path: str) -> list[FieldError]:
    config, policy = spec.get("dnsConfig"), spec.get("dnsPolicy")
    if policy == "None":
        if config is None:
            return [field.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [field.required(f"{path}.nameservers", text)]
    if not config:
        return []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    errors: list[FieldError] = []
    if len(servers) > 3:
        errors.append(field.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for i, server in enumerate(servers):
        errors += address(server, f"{path}.nameservers[{i}]")
    if len(searches) > 32:
        errors.append(field.invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(field.invalid(f"{path}.searches", searches, text))
    for i, search in enumerate(searches):
        if search != ".":
            errors += errors_from(
                is_dns1123_subdomain_with_underscore, search.removesuffix("."), f"{path}.searches[{i}]"
            )
    for i, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(field.required(f"{path}.options[{i}]", "must not be empty"))
    return errors
