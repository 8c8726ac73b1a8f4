"""What the kinds of resource.k8s.io have in common: drivers, pools, selectors, configuration, taints.

Upstream: pkg/apis/resource/validation/validation.go. Some rules are declared in the schema there and told after all others, so
`Complaints` keeps the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as data_field
from typing import Any, Final

from tetrapod.core.validation.device_selectors import selector
from tetrapod.core.validation.names import complaints, dns_subdomain
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_c_identifier, is_dns1123_subdomain, is_qualified_name, is_valid_label_value

EFFECTS: Final = frozenset({"NoSchedule", "NoExecute", "None"})
_LONGEST_POOL: Final = 253
_LONGEST_ID: Final = 32
_MOST_SELECTORS: Final = 32
_CASELESS: Final = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
    r" (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@dataclass(slots=True)
class Complaints:
    """`written`: those of hand-written rules; `declared`: those of the schema, told last."""

    written: list[FieldError] = data_field(default_factory=list)
    declared: list[FieldError] = data_field(default_factory=list)

    def all(self) -> list[FieldError]:
        return self.written + self.declared

    def once(self, keys: Iterable[Any], path: str, shown: Iterable[Any] | None = None) -> None:
        """No key twice."""
        listed = list(keys)
        values = listed if shown is None else list(shown)
        self.declared += [field.duplicate(f"{path}[{i}]", values[i]) for i, key in enumerate(listed) if key in listed[:i]]


def pool_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _LONGEST_POOL)] if len(name) > _LONGEST_POOL else []
    for part in name.split("/"):
        errors += dns_subdomain(part, path)
    return errors


def declared_driver(name: str, path: str, found: Complaints) -> None:
    if not name:
        found.declared.append(field.required(path))
    elif len(name) > 63:
        found.declared.append(field.too_long(path, 63))
    elif is_dns1123_subdomain(name.lower()):
        found.declared.append(field.invalid(path, name, _CASELESS))


def qualified(name: str, path: str) -> list[FieldError]:
    """A C identifier, perhaps behind a domain."""
    domain, slash, last = name.partition("/")
    if not slash:
        return identifier(name, path)
    if not domain:
        errors = [field.invalid(path, "", "the domain must not be empty")]
    else:
        errors = complaints(is_dns1123_subdomain, domain, path)
    return errors + (identifier(last, path) if last else [field.invalid(path, "", "the name must not be empty")])


def identifier(name: str, path: str) -> list[FieldError]:
    errors = [field.too_long(path, _LONGEST_ID)] if len(name) > _LONGEST_ID else []
    return errors + complaints(is_c_identifier, name, path)


def selectors(listed: list[Object], path: str, *, stored: bool = False) -> list[FieldError]:
    """`stored`: the expressions have been checked before."""
    errors: list[FieldError] = []
    if len(listed) > _MOST_SELECTORS:
        return errors
    for i, given in enumerate(listed):
        if (cel := given.get("cel")) is None:
            errors.append(field.required(f"{path}[{i}].cel"))
        elif not stored:
            errors += selector(cel.get("expression") or "", f"{path}[{i}].cel.expression")
    return errors


def configuration(config: Object, path: str, found: Complaints) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        found.written.append(field.required(f"{path}.opaque"))
        return
    declared_driver(opaque.get("driver") or "", f"{path}.opaque.driver", found)
    parameters = opaque.get("parameters")
    if parameters is None:
        found.written.append(field.required(f"{path}.opaque.parameters"))
    elif not isinstance(parameters, dict):
        found.written.append(field.invalid(f"{path}.opaque.parameters", "<value omitted>", "must be a valid JSON object"))


def taint(given: Object, path: str, found: Complaints) -> None:
    effect = given.get("effect") or ""
    found.written += complaints(is_qualified_name, given.get("key") or "", f"{path}.key")
    if value := given.get("value"):
        found.written += complaints(is_valid_label_value, value, f"{path}.value")
    if not effect:
        found.declared.append(field.required(f"{path}.effect"))
    elif effect not in EFFECTS:
        found.declared.append(field.not_supported(f"{path}.effect", effect, EFFECTS))


def binding(given: Object, path: str) -> list[FieldError]:
    conditions, failures = given.get("bindingConditions") or [], given.get("bindingFailureConditions") or []
    errors: list[FieldError] = []
    for key, listed in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        for i, name in enumerate(listed):
            errors += complaints(is_qualified_name, name, f"{path}.{key}[{i}]")
    for key, listed in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        for i, name in enumerate(listed):
            if name in listed[:i]:
                errors.append(field.duplicate(f"{path}.{key}[{i}]", name))
            if key == "bindingFailureConditions" and name in conditions:
                text = "bindingFailureConditions must not overlap with bindingConditions"
                errors.append(field.invalid(f"{path}.{key}[{i}]", name, text))
    for key, listed, other, others in (
        ("bindingConditions", conditions, "bindingFailureConditions", failures),
        ("bindingFailureConditions", failures, "bindingConditions", conditions),
    ):
        if others and not listed:
            errors.append(field.invalid(f"{path}.{key}", given.get(key), f"{key} are required to use {other}"))
    return errors
