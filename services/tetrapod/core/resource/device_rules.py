"""Validation rules that the kinds of resource.k8s.io share: drivers, pools, selectors, configuration and taints.

Upstream declares some rules in the schema and reports their errors after those of the hand-written ones, so
`ErrorLists` collects the two separately. `path` is always the field that errors name.

Upstream: pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as data_field
from typing import Any, Final

from tetrapod.core.resource.device_selectors import Selectors
from tetrapod.core.validation.names import dns_subdomain, errors_from
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import (
    is_c_identifier,
    is_dns1123_subdomain,
    is_long_name,
    is_long_name_caseless,
    is_qualified_name,
    is_valid_label_value,
)
from tetrapod.machinery.serializer.raw_json import text_size

_OPERATIONS: Final = frozenset({"*", "NodePrepareResources", "NodeUnprepareResources"})
EFFECTS: Final = frozenset({"NoSchedule", "NoExecute", "None"})
_LONGEST_POOL: Final = 253
_LONGEST_ID: Final = 32
_LONGEST_DRIVER: Final = 63
_LONGEST_JSON: Final = 10 * 1024
_MOST_SELECTORS: Final = 32
_MOST_CONDITIONS: Final = 4


@dataclass(slots=True)
class ErrorLists:
    """The errors of one object, in two lists, so that they can be reported in upstream's order.

    Attributes:
        written: errors of upstream's hand-written rules, which come first.
        declared: errors of rules that upstream declares in the schema, which come last.
        selectors: validates the expressions of the object.
    """

    written: list[FieldError] = data_field(default_factory=list)
    declared: list[FieldError] = data_field(default_factory=list)
    selectors: Selectors = data_field(default_factory=Selectors)

    def all(self) -> list[FieldError]:
        """Return all errors, those of hand-written rules first."""
        return self.written + self.declared

    def within_limit(self, listed: Sequence[Any], path: str, limit: int) -> bool:
        """Return whether the list has at most `limit` elements; if not, add an error.

        Callers then skip the validation of its elements.

        Args:
            path: the field path of the list, for the error.
        """
        if len(listed) > limit:
            self.declared.append(field.too_many(path, len(listed), limit))
        return len(listed) <= limit

    def unique(self, keys: Iterable[Any], path: str, shown: Iterable[Any] | None = None) -> None:
        """Add an error for each key that repeats an earlier one.

        Args:
            keys: the keys of a list's elements.
            path: the field of the list.
            shown: the values to print in the errors, in the order of `keys`; None prints the keys.
        """
        listed = list(keys)
        values = listed if shown is None else list(shown)
        self.declared += [field.duplicate(f"{path}[{i}]", values[i]) for i in sorted(repeated(listed))]


def pool_name(name: str, path: str) -> list[FieldError]:
    """Validate the name of a pool by upstream's hand-written rules: DNS subdomains separated by slashes.

    Args:
        path: the field path of the value, for the errors.
    """
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _LONGEST_POOL)] if len(name) > _LONGEST_POOL else []
    for part in name.split("/"):
        errors += dns_subdomain(part, path)
    return errors


def declared_pool(name: str, path: str) -> list[FieldError]:
    """Validate the name of a pool by the rules that the schema declares.

    It is required and not too long, and consists of DNS subdomains separated by slashes.

    Args:
        path: the field path of the value, for the errors.
    """
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _LONGEST_POOL)] if len(name) > _LONGEST_POOL else []
    for i, part in enumerate(name.split("/")):
        texts = is_long_name(part) if part else ["must not be empty"]
        errors += [field.invalid(path, part or name, f"segment {i}: {text}") for text in texts]
    return errors


def declared_driver(name: str, path: str, collected: ErrorLists) -> None:
    """Validate the name of a driver by the rules that the schema declares, adding errors to `collected`.

    It is required, and is a DNS subdomain (in any case) of at most 63 characters.

    Args:
        path: the field path of the value, for the errors.
    """
    if not name:
        collected.declared.append(field.required(path))
    else:
        collected.declared += errors_from(is_long_name_caseless, name, path)
        if len(name) > _LONGEST_DRIVER:
            collected.declared.append(field.too_many_characters(path, _LONGEST_DRIVER))


def qualified(name: str, path: str) -> list[FieldError]:
    """Validate the name of an attribute or capacity: a C identifier with an optional domain before a slash.

    As upstream, a name with two slashes is accepted.

    Args:
        path: the field path for the errors: that of the map which has the name as a key.
    """
    domain, slash, last = name.partition("/")
    if not slash:
        return identifier(name, path)
    if "/" in last:
        return []
    if not domain:
        errors = [field.invalid(path, "", "the domain must not be empty")]
    else:
        errors = [field.too_long(path, _LONGEST_DRIVER)] if len(domain) > _LONGEST_DRIVER else []
        errors += [field.invalid(path, domain, text) for text in is_dns1123_subdomain(domain.lower())]
    return errors + (identifier(last, path) if last else [field.invalid(path, "", "the name must not be empty")])


def fully_qualified(name: str, path: str) -> list[FieldError]:
    """Validate the name of an attribute with its domain, by the rules that the schema declares.

    It is a DNS subdomain of at most 63 characters, a slash, and a C identifier. As upstream, a name with two slashes is
    accepted.

    Args:
        path: the field path of the name, for the errors.

    Upstream: staging/src/k8s.io/apimachinery/pkg/api/validate, ResourceFullyQualifiedName.
    """
    domain, slash, last = name.partition("/")
    if not slash:
        return [
            *identifier(name, path),
            field.invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash"),
        ]
    if "/" in last:
        return []
    if not domain:
        errors = [field.invalid(path, "", "prefix must not be empty")]
    else:
        errors = [field.too_long(path, _LONGEST_DRIVER)] if len(domain) > _LONGEST_DRIVER else []
        errors += [field.invalid(path, domain, f"prefix: {text}") for text in is_long_name(domain)]
    return errors + (identifier(last, path) if last else [field.invalid(path, "", "name must not be empty")])


def skipped_operations(listed: list[str], path: str, collected: ErrorLists) -> None:
    """Validate skipNodeOperations of a slice or of an allocation result, adding errors to `collected`.

    The operations are known and unique. NodePrepareResources is only skipped together with NodeUnprepareResources.

    Args:
        listed: the operations.
        path: the field path of the list, for the errors.
    """
    if "NodePrepareResources" in listed and not {"NodeUnprepareResources", "*"} & set(listed):
        text = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        collected.written.append(field.invalid(path, listed, text))
    collected.unique(listed, path)
    collected.declared += [
        field.not_supported(f"{path}[{i}]", name, _OPERATIONS)
        for i, name in enumerate(listed)
        if name not in _OPERATIONS
    ]


def partition_type(name: str | None, stored: str | None, path: str) -> list[FieldError]:
    """Validate the name of the attribute that holds the type of partitions, by the rules that the schema declares.

    Args:
        name: the new name, or None.
        stored: the stored name, or None. An unchanged name is not validated again.
        path: the field path of the name, for the errors.
    """
    if name is None or name == stored:
        return []
    if not feature_gates.enabled("DRAPartitionableDevicesType"):
        return [field.forbidden(path)]
    return fully_qualified(name, path)


def identifier(name: str, path: str) -> list[FieldError]:
    """Validate a C identifier of at most 32 characters.

    Args:
        path: the field path of the value, for the errors.
    """
    errors = [field.too_long(path, _LONGEST_ID)] if len(name) > _LONGEST_ID else []
    return errors + errors_from(is_c_identifier, name, path)


def selectors(listed: list[Object], path: str, collected: ErrorLists, *, compiles: bool) -> None:
    """Validate device selectors, adding errors to `collected`.

    There are at most 32, and each has a CEL expression, which is compiled (`device_selectors.Selectors`).

    Args:
        path: the field path of the list, for the errors.
        compiles: whether the expressions are compiled. They need not be if the stored object has the same ones.
    """
    if not collected.within_limit(listed, path, _MOST_SELECTORS):
        return
    for i, given in enumerate(listed):
        if (cel := given.get("cel")) is None:
            collected.written.append(field.required(f"{path}[{i}].cel"))
        elif compiles:
            collected.written += collected.selectors.validate(
                cel.get("expression") or "", f"{path}[{i}].cel.expression"
            )


def configuration(config: Object, path: str, collected: ErrorLists, *, stored: bool = False) -> None:
    """Validate one element of a claim's or DeviceClass's `config`, adding errors to `collected`.

    `opaque` is required, with the name of a driver and parameters (`json_object`).

    Args:
        path: the field path of the element, for the errors.
        stored: whether the stored object has the same configuration; its size is not checked again.
    """
    opaque = config.get("opaque")
    if opaque is None:
        collected.written.append(field.required(f"{path}.opaque"))
        return
    declared_driver(opaque.get("driver") or "", f"{path}.opaque.driver", collected)
    collected.written += json_object(opaque.get("parameters"), f"{path}.opaque.parameters", stored=stored)


def json_object(value: Any, path: str, *, stored: bool = False) -> list[FieldError]:
    """Validate a JSON object that only drivers interpret: at most 10 KiB, as the client sent it.

    Args:
        path: the field path of the value, for the errors.
        stored: whether it is stored already; its size is not checked, because it may be older than upstream's
            limit.
    """
    if value is None:
        return [field.required(path)]
    if not stored and text_size(value) > _LONGEST_JSON:
        return [field.too_long(path, _LONGEST_JSON)]
    return [] if isinstance(value, dict) else [field.invalid(path, "<value omitted>", "must be a valid JSON object")]


def taint(given: Object, path: str, collected: ErrorLists) -> None:
    """Validate a device taint, adding errors to `collected`.

    The key is a qualified name, the value is valid as that of a label, and the effect is required and known.

    Args:
        given: the taint.
        path: its field path, for the errors.
    """
    effect = given.get("effect") or ""
    collected.written += errors_from(is_qualified_name, given.get("key") or "", f"{path}.key")
    if value := given.get("value"):
        collected.written += errors_from(is_valid_label_value, value, f"{path}.value")
    if not effect:
        collected.declared.append(field.required(f"{path}.effect"))
    elif effect not in EFFECTS:
        collected.declared.append(field.not_supported(f"{path}.effect", effect, EFFECTS))


def binding(given: Object, path: str, collected: ErrorLists) -> None:
    """Validate bindingConditions and bindingFailureConditions of a device, adding errors to `collected`.

    Both or neither are set; their elements are unique and do not overlap.

    Args:
        given: the device, or the allocation result of a device, which has the same fields.
        path: its field path, for the errors.
    """
    conditions, failures = given.get("bindingConditions") or [], given.get("bindingFailureConditions") or []
    errors = collected.written
    for key, listed in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        if collected.within_limit(listed, f"{path}.{key}", _MOST_CONDITIONS):
            for i, name in enumerate(listed):
                errors += errors_from(is_qualified_name, name, f"{path}.{key}[{i}]")
    overlapping = frozenset(conditions)
    for key, listed in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        repeated_indexes = repeated(listed)
        for i, name in enumerate(listed):
            if i in repeated_indexes:
                errors.append(field.duplicate(f"{path}.{key}[{i}]", name))
            if key == "bindingFailureConditions" and name in overlapping:
                text = "bindingFailureConditions must not overlap with bindingConditions"
                errors.append(field.invalid(f"{path}.{key}[{i}]", name, text))
    for key, listed, other, others in (
        ("bindingConditions", conditions, "bindingFailureConditions", failures),
        ("bindingFailureConditions", failures, "bindingConditions", conditions),
    ):
        if others and not listed:
            errors.append(field.invalid(f"{path}.{key}", given.get(key), f"{key} are required to use {other}"))
