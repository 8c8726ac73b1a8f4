"""Validation of names with a domain prefix, such as `acme.io/foo`.

Upstream: k8s.io/apimachinery/pkg/util/validation, IsDomainPrefixedPath.
"""

from __future__ import annotations

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.names import is_dns1123_subdomain, is_http_path


def domain_prefixed_path(value: str, path: str) -> list[FieldError]:
    """Return the errors of a name that must be a DNS subdomain, a slash and a path, or [] if it is valid.

    An example is `acme.io/foo`.

    Args:
        value: the name.
        path: the path of the field that contains it, for the errors.
    """
    if not value:
        return [field.required(path)]
    domain, _, rest = value.partition("/")
    if not domain or not rest:
        return [field.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [field.invalid(path, domain, text) for text in is_dns1123_subdomain(domain)]
    return errors + [field.invalid(path, rest, text) for text in is_http_path(rest)]
