"""Validation of names with a domain before a slash.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation, IsDomainPrefixedPath and IsDomainPrefixedKey.
"""

from __future__ import annotations

from tetrapod.core.validation.names import qualified_name
from tetrapod.machinery import field
from tetrapod.machinery.domain_paths import domain_prefixed_path
from tetrapod.machinery.field import FieldError

__all__ = ["domain_prefixed_key", "domain_prefixed_path"]


def domain_prefixed_key(key: str, path: str) -> list[FieldError]:
    """Validate a key with a domain, such as `acme.io/foo` (upstream: IsDomainPrefixedKey)."""
    if not key:
        return [field.required(path)]
    if errors := qualified_name(key, path):
        return errors
    return [] if "/" in key else [field.invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]
