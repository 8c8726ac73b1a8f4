"""The definition of Ingresses, with their validation, warnings and table columns.

Upstream: pkg/registry/networking/ingress/strategy.go and pkg/apis/networking/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import RELAXED_SERVICE_NAMES, address, errors_from, port_number
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_sloppy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import (
    is_dns1035_label,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_path_segment_name,
    is_valid_port_name,
    is_wildcard_dns1123_subdomain,
)
from tetrapod.machinery.table import Column, TableConvertor

_NameCheck: TypeAlias = Callable[[str], list[str]]
"""Returns the error messages for the name of a Service, or []."""
_CLASS: Final = "kubernetes.io/ingress.class"
_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES: Final = ("/..", "/.")
_PATH_TYPES: Final = frozenset({"Exact", "Prefix", "ImplementationSpecific"})
_NO_ADDRESS: Final = "must be a DNS name, not an IP address"
_MAX_HOSTS: Final = 3
"""The hosts that a Table row shows."""


def definition() -> ResourceDefinition:
    """Return the resource definition of Ingresses: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        warnings=warnings,
        has_status=True,
        initial_status={"loadBalancer": {}},
        generation=("spec",),
        revalidates_generate_name="after finalizers",
    )
    return builtin(
        "networking.k8s.io",
        "ingresses",
        strategy,
        storage_prefix="ingress",
        table=TABLE,
        subresources={"status": StatusStrategy(strategy, validate=validate_status)},
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a new Ingress, and that its deprecated class annotation equals ingressClassName.

    It has a default backend or rules. Hosts, paths, backends, names of Secrets and the class name are valid.
    """
    spec = obj.get("spec") or {}
    errors = _spec(spec, _service_names({}), bad_secrets=False, bad_wildcards=False)
    annotations = obj["metadata"].get("annotations") or {}
    name = spec.get("ingressClassName")
    if _CLASS in annotations and name is not None and annotations[_CLASS] != name:
        text = "must match `ingressClassName` when both are specified"
        errors.append(field.invalid(f"annotations.{_CLASS}", annotations[_CLASS], text))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Ingress.

    Invalid secret names and invalid paths of wildcard hosts are accepted if the stored object has any, because it may
    be older than these checks.
    """
    old_spec = old.get("spec") or {}
    bad_secrets = any(_secret_texts(tls.get("secretName") or "") for tls in old_spec.get("tls") or ())
    bad_wildcards = any(
        "*" in (rule.get("host") or "") and _http(rule, "", is_dns1035_label) for rule in old_spec.get("rules") or ()
    )
    names = _service_names(old_spec)
    return _spec(new.get("spec") or {}, names, bad_secrets=bad_secrets, bad_wildcards=bad_wildcards)


def _service_names(old_spec: Object) -> _NameCheck:
    """Return the check of the names of Services: DNS-1123 labels, or DNS-1035 labels without the gate for the others.

    Without the gate, DNS-1123 labels are accepted nevertheless if the stored Ingress has one that is not a DNS-1035
    label.

    Args:
        old_spec: the spec of the stored Ingress; {} on create.
    """
    if feature_gates.enabled(RELAXED_SERVICE_NAMES):
        return is_dns1123_label
    stored = (name for name in _services(old_spec) if is_dns1035_label(name) and not is_dns1123_label(name))
    return is_dns1035_label if next(stored, None) is None else is_dns1123_label


def _services(spec: Object) -> Iterator[str]:
    """Yield the names of the Services in the backends of an Ingress."""
    backends = [spec.get("defaultBackend")]
    for rule in spec.get("rules") or ():
        backends += [path.get("backend") for path in (rule.get("http") or {}).get("paths") or ()]
    for backend in backends:
        if backend is not None and (service := backend.get("service")) is not None:
            yield service.get("name") or ""


def _spec(spec: Object, service_names: _NameCheck, *, bad_secrets: bool, bad_wildcards: bool) -> list[FieldError]:
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    errors: list[FieldError] = []
    if not rules and backend is None:
        text = "either `defaultBackend` or `rules` must be specified"
        errors.append(field.invalid("spec", spec.get("rules"), text))
    if backend is not None:
        errors += _backend(backend, "spec.defaultBackend", service_names)
    for i, rule in enumerate(rules):
        host, path = rule.get("host") or "", f"spec.rules[{i}]"
        errors += _host(host, f"{path}.host")
        if "*" not in host or not bad_wildcards:
            errors += _http(rule, path, service_names)
    for i, tls in enumerate(spec.get("tls") or ()):
        path = f"spec.tls[{i}]"
        for j, host in enumerate(tls.get("hosts") or ()):
            check = is_wildcard_dns1123_subdomain if "*" in host else is_dns1123_subdomain
            errors += errors_from(check, host, f"{path}.hosts[{j}]")
        if not bad_secrets:
            errors += errors_from(_secret_texts, tls.get("secretName") or "", f"{path}.secretName")
    if (name := spec.get("ingressClassName")) is not None:
        errors += errors_from(is_dns1123_subdomain, name, "spec.ingressClassName")
    return errors


def _secret_texts(name: str) -> list[str]:
    return is_dns1123_subdomain(name) if name else []


def _host(host: str, path: str) -> list[FieldError]:
    if not host:
        return []
    errors = [field.invalid(path, host, _NO_ADDRESS)] if parse_sloppy(host) is not None else []
    return errors + errors_from(is_wildcard_dns1123_subdomain if "*" in host else is_dns1123_subdomain, host, path)


def _http(rule: Object, path: str, service_names: _NameCheck) -> list[FieldError]:
    http = rule.get("http")
    if http is None:
        return []
    paths = http.get("paths") or []
    errors = [] if paths else [field.required(f"{path}.http.paths")]
    for i, item in enumerate(paths):
        errors += _path(item, f"{path}.http.paths[{i}]", service_names)
    return errors


def _path(item: Object, path: str, service_names: _NameCheck) -> list[FieldError]:
    kind, value, at = item.get("pathType"), item.get("path") or "", f"{path}.path"
    if kind is None:
        return [field.required(f"{path}.pathType", "pathType must be specified")]
    errors: list[FieldError] = []
    if kind in ("Exact", "Prefix"):
        if not value.startswith("/"):
            errors.append(field.invalid(at, value, "must be an absolute path"))
        errors += [field.invalid(at, value, f"must not contain '{bad}'") for bad in _SEQUENCES if bad in value]
        errors += [field.invalid(at, value, f"cannot end with '{bad}'") for bad in _SUFFIXES if value.endswith(bad)]
    elif kind == "ImplementationSpecific":
        if value and not value.startswith("/"):
            errors.append(field.invalid(at, value, "must be an absolute path"))
    else:
        errors.append(field.not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    return errors + _backend(item.get("backend") or {}, f"{path}.backend", service_names)


def _backend(backend: Object, path: str, service_names: _NameCheck) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [field.invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return object_reference(resource, f"{path}.resource", "")
    if service is None:
        return [field.invalid(path, "", "resource or service backend is required")]
    if name := service.get("name"):
        errors = errors_from(service_names, name, f"{path}.service.name")
    else:
        errors = [field.required(f"{path}.service.name")]
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        errors.append(field.invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += errors_from(is_valid_port_name, port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        errors += port_number(port["number"], f"{path}.service.port.number")
    else:
        errors.append(field.required(path, "port name or number is required"))
    return errors


def object_reference(reference: Object, path: str, no_kind: str | None) -> list[FieldError]:
    """Validate a reference to an object of any kind.

    apiGroup, if it is set, is a DNS subdomain; kind and name can be path segments.

    Args:
        path: the field path of the reference, for the errors.
        no_kind: the error detail for a missing kind or name; None if the caller reports these itself.
    """
    errors: list[FieldError] = []
    if (group := reference.get("apiGroup")) is not None:
        errors += errors_from(is_dns1123_subdomain, group, f"{path}.apiGroup")
    if kind := reference.get("kind"):
        errors += errors_from(is_path_segment_name, kind, f"{path}.kind")
    elif no_kind is not None:
        errors.append(field.required(f"{path}.kind", no_kind))
    if name := reference.get("name"):
        errors += errors_from(is_path_segment_name, name, f"{path}.name")
    elif no_kind is not None:
        errors.append(field.required(f"{path}.name", no_kind))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the load balancer status of an Ingress: IP addresses, and host names that are not addresses.

    Addresses in a legacy format are accepted if the stored status has them.
    """
    old_addresses = [
        i.get("ip") or "" for i in ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    ]
    errors: list[FieldError] = []
    for i, ingress in enumerate(((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        path = f"status.loadBalancer.ingress[{i}]"
        if ip := ingress.get("ip"):
            errors += address(ip, f"{path}.ip", old_addresses)
        if host := ingress.get("hostname"):
            errors += errors_from(is_dns1123_subdomain, host, f"{path}.hostname")
            if parse_sloppy(host) is not None:
                errors.append(field.invalid(f"{path}.hostname", host, _NO_ADDRESS))
    return errors


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return a warning if a new Ingress has the deprecated annotation kubernetes.io/ingress.class; else [].

    Args:
        old: the stored object; None on create.
    """
    if old is not None or _CLASS not in (obj["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _hosts(rules: list[Object]) -> str:
    """Return the cell HOSTS: the first three hosts of the rules, separated by commas, or "*" if no rule has a host.

    If rules follow the third host, " + N more..." is appended. As upstream, N is the number of all rules minus three,
    so it counts rules without a host too.

    Upstream: pkg/printers/internalversion/printers.go, formatHosts.
    """
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == _MAX_HOSTS:
            return f"{','.join(hosts)} + {len(rules) - _MAX_HOSTS} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    addresses = [
        i.get("ip") or i.get("hostname") or "" for i in (status_of(obj).get("loadBalancer") or {}).get("ingress") or []
    ]
    return [
        name_of(obj),
        NONE if (name := spec.get("ingressClassName")) is None else name,
        _hosts(spec.get("rules") or []),
        ",".join(sorted({a for a in addresses if a})),
        "80, 443" if spec.get("tls") else "80",
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Class"),
        Column("Hosts"),
        Column("Address"),
        Column("Ports"),
        AGE,
    ),
    _row,
)
