"""Names of certificate signers. Upstream: pkg/apis/certificates/validation/validation.go, ValidateSignerName."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.names import DNS1123_SUBDOMAIN_MAX, is_dns1123_label, is_dns1123_subdomain

_LONGEST_SIGNER: Final = 253 + 1 + 253 + 1 + 63


def signer_name(name: str, path: str) -> list[FieldError]:
    """Validate the name of a signer, such as `example.com/my-signer`.

    It is a domain of at least two segments, a slash, and a name with dots.

    Args:
        path: the field path of the name, for the errors.

    Upstream: ValidateSignerName
    """
    if not name:
        return [field.required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        return [
            field.invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
        ]
    errors = [field.too_long(path, DNS1123_SUBDOMAIN_MAX)] if len(domain.encode()) > DNS1123_SUBDOMAIN_MAX else []
    errors += _first_error(is_dns1123_label, domain, path)
    if "." not in domain:
        errors.append(field.invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    errors += _first_error(is_dns1123_subdomain, rest, path)
    return [*errors, field.too_long(path, _LONGEST_SIGNER)] if len(name.encode()) > _LONGEST_SIGNER else errors


def _first_error(check: Callable[[str], list[str]], dotted: str, path: str) -> list[FieldError]:
    """Return the errors of the first part of a dotted name that `check` rejects, or [].

    Args:
        check: returns the error texts of a part.
        path: the field path of the name, for the errors.
    """
    for part in dotted.split("."):
        if texts := check(part):
            return [field.invalid(path, dotted, f"validating label {go_quote(part)}: {text}") for text in texts]
    return []
