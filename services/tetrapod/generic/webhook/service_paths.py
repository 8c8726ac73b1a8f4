"""Validation of the path of a webhook's service.

Upstream: staging/src/k8s.io/apiserver/pkg/util/webhook/validation.go, ValidateWebhookService.
"""

from __future__ import annotations

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.names import is_dns1123_subdomain


def service_path_errors(value: str | None, path: str) -> list[FieldError]:
    """Return the errors of `service.path`: it begins with a slash, and its segments are subdomains.

    Args:
        value: the path of the service, which is optional.
        path: the path of the field, for the errors.
    """
    if not value or value == "/":
        return []
    if value == "//":
        return [field.invalid(path, value, "segment[0] may not be empty")]
    errors = [] if value.startswith("/") else [field.invalid(path, value, "must start with a '/'")]
    # upstream drops the first byte without checking that it is a slash
    rest = value.encode()[1:].decode("utf-8", "replace")
    for i, segment in enumerate(rest.removesuffix("/").split("/")):
        if not segment:
            errors.append(field.invalid(path, value, f"segment[{i}] may not be empty"))
            continue
        errors += [field.invalid(path, value, f"segment[{i}]: {text}") for text in is_dns1123_subdomain(segment)]
    return errors
