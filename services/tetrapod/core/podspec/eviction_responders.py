"""Validation of the responders of a pod, which act on Evictions, and of the names that they may have.

Upstream: pkg/apis/core/v1/validation.go and EvictionResponder in k8s.io/api/core/v1/types.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.validation.declared import Field, Type, at_least, at_most, prefixed_label_key, validate
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

MAX_RESPONDERS: Final = 10
HIGHEST_PRIORITY: Final = 100_000
LOWEST_FREE_PRIORITY: Final = 1000
"""The least priority of responders that do not belong to Kubernetes."""
RESERVED_PRIORITY: Final = "priorities 0-999 are reserved for responders with *.k8s.io suffix"
_RESERVED_DOMAINS: Final = (".k8s.io", ".kubernetes.io")
_RESERVED_DOMAIN: Final = f"domain names {', '.join('*' + suffix for suffix in _RESERVED_DOMAINS)} are reserved"


def unreserved_domain(value: str, stored: Any, path: str) -> list[FieldError]:
    """Reject names in the domains of Kubernetes. It is a `Check` of declared rules; `stored` is not used.

    Upstream: ValidateForbiddenReservedDomainSuffixes.
    """
    domain = value.partition("/")[0].lower().strip().rstrip(".")
    if any(domain.endswith(suffix) or domain == suffix.strip(".") for suffix in _RESERVED_DOMAINS):
        return [field.invalid(path, value, _RESERVED_DOMAIN)]
    return []


def _unreserved_priority(value: int, stored: Any, path: str) -> list[FieldError]:
    return [field.invalid(path, value, RESERVED_PRIORITY)] if 0 <= value < LOWEST_FREE_PRIORITY else []


_RESPONDER: Final = Type(
    {
        "name": Field((unreserved_domain, prefixed_label_key), required=True),
        "priority": Field((_unreserved_priority, at_most(HIGHEST_PRIORITY), at_least(0)), pointer=True, required=True),
    }
)
_RULES: Final = Type({"evictionResponders": Field(items=_RESPONDER, key="name", max_items=MAX_RESPONDERS)})


def eviction_responders(spec: Object, path: str) -> list[FieldError]:
    """Validate spec.evictionResponders of a pod or pod template.

    Args:
        spec: the spec of the pod.
        path: its field path.
    """
    return validate(_RULES, spec, None, path, update=False) if spec.get("evictionResponders") else []
