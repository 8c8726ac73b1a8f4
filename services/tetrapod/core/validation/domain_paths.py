"""Names with a domain before a slash (upstream: k8s.io/apimachinery/pkg/util/validation, IsDomainPrefixedPath)."""

from __future__ import annotations

from tetrapod.core.validation.names import complaints, qualified_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.names import is_dns1123_subdomain, is_http_path


def domain_prefixed_path(value: str, path: str) -> list[FieldError]:
    if not value:
        return [field.required(path)]
    domain, _, rest = value.partition("/")
    if not domain or not rest:
        return [field.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return complaints(is_dns1123_subdomain, domain, path) + complaints(is_http_path, rest, path)


def domain_prefixed_key(key: str, path: str) -> list[FieldError]:
    """`acme.io/foo` (upstream: IsDomainPrefixedKey)."""
    if not key:
        return [field.required(path)]
    if errors := qualified_name(key, path):
        return errors
    return [] if "/" in key else [field.invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]
