"""Validation of resource quantities and resource names.

Upstream: pkg/apis/core/validation/validation.go, ValidateResourceQuantityValue and validateResourceName, and
pkg/apis/core/helper/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.core.validation.names import NOT_NEGATIVE, qualified_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_qualified_name
from tetrapod.machinery.quantity import Quantity

NameCheck = Callable[[str, str], list[FieldError]]

HUGE_PAGES: Final = "hugepages-"
_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_OBJECTS: Final = (
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_QUOTA: Final = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        *_OBJECTS,
    }
)
_STANDARD: Final = frozenset({*_QUOTA, "storage"})
_INTEGERS: Final = frozenset(_OBJECTS)


def quantity(value: Any) -> Quantity:
    """Return the quantity of a text or a number in an API object, and zero for None.

    Raises:
        ValueError: the value is not a quantity. The schema has rejected such objects before validation.
    """
    return Quantity.of(value)


def not_negative(value: Quantity, path: str) -> list[FieldError]:
    """Reject a negative quantity.

    Args:
        path: the field path of the quantity, for the errors.
    """
    return [field.invalid(path, str(value), NOT_NEGATIVE)] if value.sign < 0 else []


def positive(value: Quantity, path: str) -> list[FieldError]:
    """Reject a quantity that is zero or negative.

    Args:
        path: the field path of the quantity, for the errors.
    """
    return [] if value.sign > 0 else [field.invalid(path, str(value), "must be greater than zero")]


def amount(name: str, value: Quantity, path: str) -> list[FieldError]:
    """Validate the quantity of a resource: not negative, and an integer for counted resources.

    Args:
        name: the resource, such as "cpu" or "pods".
        path: the field path of the quantity, for the errors.
    """
    errors = not_negative(value, path)
    if is_integer(name) and value.milli_value % 1000:
        errors.append(field.invalid(path, str(value), "must be an integer"))
    return errors


def is_huge_page(name: str) -> bool:
    """Return whether the resource name starts with "hugepages-"."""
    return name.startswith(HUGE_PAGES)


def is_divisible(name: str, value: Quantity) -> bool:
    """Return whether an amount of huge pages is a whole number of pages. It is for other resources too.

    Args:
        name: the resource, such as "hugepages-2Mi" or "cpu".
        value: the amount.
    """
    if not is_huge_page(name):
        return True
    try:
        page = quantity(name.removeprefix(HUGE_PAGES))
    except ValueError:
        return False
    return page.sign > 0 and value.nano % page.nano == 0


def is_node_allocatable(name: str) -> bool:
    """Return whether devices may provide this resource of nodes: cpu, memory or huge pages."""
    return name in ("cpu", "memory") or is_huge_page(name)


def is_quota_huge_page(name: str) -> bool:
    """Return whether the resource name starts with "hugepages-" or, as in quotas, with "requests.hugepages-"."""
    return name.startswith((HUGE_PAGES, "requests.hugepages-"))


def is_native(name: str) -> bool:
    """Return whether this is a resource of Kubernetes: its name has no domain, or contains "kubernetes.io/"."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether this is an extended resource: in a domain other than kubernetes.io, such as `example.com/gpu`."""
    return not is_native(name) and not name.startswith("requests.") and not is_qualified_name(f"requests.{name}")


def is_integer(name: str) -> bool:
    """Return whether amounts of this resource must be integers: object counts and extended resources."""
    return name in _INTEGERS or is_extended(name)


def may_overcommit(name: str) -> bool:
    """Return whether requests may be lower than limits: resources of Kubernetes, except huge pages."""
    return is_native(name) and not is_huge_page(name)


def is_standard_for_quota(name: str) -> bool:
    """Return whether a quota can limit this resource by a name without domain ("pods", "requests.cpu", huge pages)."""
    return name in _QUOTA or is_quota_huge_page(name)


def resource_name(name: str, path: str) -> list[FieldError]:
    """Validate the name of a resource: a qualified name that is standard or has a domain.

    Args:
        path: the field path of the name, for the errors.
    """
    name = field.TypedText(name)
    if errors := qualified_name(name, path):
        return errors
    if "/" not in name and name not in _STANDARD and not is_quota_huge_page(name):
        return [field.invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_name(name: str, path: str) -> list[FieldError]:
    """Validate the name of a resource in a container's requirements.

    It is cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain.

    Args:
        path: the field path of the name, for the errors.
    """
    if name in _CONTAINER:
        return []
    name = field.TypedText(name)
    errors = resource_name(name, path)
    if "/" not in name:
        if not is_huge_page(name):
            errors.append(field.invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(field.invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def pod_resource_name(name: str, path: str) -> list[FieldError]:
    """Validate the name of a resource in pod-level requirements: cpu, memory or hugepages.

    Args:
        path: the field path of the name, for the errors.
    """
    if is_node_allocatable(name):
        return []
    return resource_name(name, path) or [field.not_supported(path, name, ["cpu", "hugepages-", "memory"])]


def quota_resource_name(name: str, path: str) -> list[FieldError]:
    """Validate the name of a resource in a quota: a standard one for quotas, or with a domain.

    Args:
        path: the field path of the name, for the errors.
    """
    name = field.TypedText(name)
    errors = resource_name(name, path)
    if "/" not in name and not is_standard_for_quota(name):
        errors.append(field.invalid(path, name, "must be a standard resource for quota"))
    return errors


def basic_resources(listed: Object | None, path: str) -> list[FieldError]:
    """Reject negative quantities in a resource list, which may be None.

    Args:
        path: the field path of the list, for the errors.
    """
    return [
        field.invalid(f"{path}[{name}]", quantity(value).value, "must be a valid resource quantity")
        for name, value in (listed or {}).items()
        if quantity(value).value < 0
    ]
