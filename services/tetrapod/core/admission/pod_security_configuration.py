"""PodSecurityConfiguration: the policy of namespaces without labels, and the exemptions.

Upstream: k8s.io/pod-security-admission/admission/api (load, v1, validation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tetrapod.core.admission.pod_security import Exemptions
from tetrapod.core.podsecurity.policy import LATEST, PRIVILEGED, STRICTNESS, LevelVersion, Policy, is_version
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import kind, string, strings, struct
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import name_is_dns_subdomain, validate_namespace_name
from tetrapod.machinery.schema_node import SchemaNode

KIND: Final = "PodSecurityConfiguration"
_GROUP: Final = "pod-security.admission.config.k8s.io"
_MODES: Final = ("enforce", "warn", "audit")


def read_policy(data: bytes) -> tuple[Policy, Exemptions]:
    """Return the policy for namespaces without labels, and the exemptions, of a PodSecurityConfiguration file.

    Raises:
        ValueError: the file is invalid; with upstream's text.
    """
    config = load(data, {(f"{_GROUP}/{version}", KIND): _shape(version) for version in ("v1", "v1beta1", "v1alpha1")})
    defaults: Object = {}
    for mode in _MODES:
        defaults |= {mode: PRIVILEGED, f"{mode}-version": LATEST}
    defaults |= config.get("defaults") or {}
    exempt = config.get("exemptions") or {}
    errors = [*_default_errors(defaults), *_exemption_errors(exempt)]
    if errors:
        raise ValueError(field.aggregate(errors))
    levels = {mode: LevelVersion(defaults[mode], defaults[f"{mode}-version"]) for mode in _MODES}
    names = (frozenset(exempt.get(name) or ()) for name in ("usernames", "namespaces", "runtimeClasses"))
    return Policy(**levels), Exemptions(*names)


def _default_errors(defaults: Object) -> Iterator[FieldError]:
    for mode in _MODES:
        if (level := defaults[mode]) not in STRICTNESS:
            yield field.invalid(f"defaults.{mode}", level, f"must be one of {', '.join(STRICTNESS)}")
        if not is_version(version := defaults[f"{mode}-version"]):
            yield field.invalid(f"defaults.{mode}-version", version, 'must be "latest" or "v1.x"')


def _exemption_errors(exempt: Object) -> Iterator[FieldError]:
    yield from _name_errors(
        "namespaces", exempt.get("namespaces") or (), lambda name: validate_namespace_name(name, False)
    )
    yield from _name_errors(
        "runtimeClasses", exempt.get("runtimeClasses") or (), lambda name: name_is_dns_subdomain(name, False)
    )
    yield from _name_errors(
        "usernames", exempt.get("usernames") or (), lambda name: [] if name else ["username must not be empty"]
    )


def _name_errors(kind: str, names: Sequence[str], check: Callable[[str], list[str]]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        path = f"exemptions.{kind}[{i}]"
        if texts := check(name):
            yield field.invalid(path, name, ", ".join(texts))
        elif name in seen:
            yield field.duplicate(path, name)
        seen.add(name)


def _shape(version: str) -> SchemaNode:
    defaults = {f"{mode}{suffix}": string() for mode in ("enforce", "audit", "warn") for suffix in ("", "-version")}
    exemptions = {name: strings() for name in ("usernames", "namespaces", "runtimeClasses")}
    return kind(
        f"{version}.{KIND}",
        defaults=struct(f"{version}.PodSecurityDefaults", **defaults),
        exemptions=struct(f"{version}.PodSecurityExemptions", **exemptions),
    )
