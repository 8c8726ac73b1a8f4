"""Validation of `spec.conversion`: the strategy, and the URL or service of the webhook.

Upstream: also apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from tetrapod.generic.webhook.service_paths import service_path_errors
from tetrapod.machinery.field import FieldError, child, forbidden, index, invalid, not_supported, required
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1035_label

STRATEGIES: Final = ("None", "Webhook")
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_FORM: Final = "; desired format: https://host[/path]"
_UNWANTED: Final = "should not be set when strategy is not set to Webhook"


def validate_conversion(conversion: Object | None, path: str, *, recognized: bool, any_ca: bool) -> list[FieldError]:
    """Return the errors of spec.conversion, which may be None.

    The strategy is known. With Webhook, a client configuration and review versions are required; with None, neither is
    allowed.

    Args:
        path: the field path of the conversion.
        recognized: whether the review versions must include one that this server supports.
        any_ca: whether an invalid CA bundle is accepted.
    """
    if conversion is None:
        return []
    errors = validate_enum(conversion.get("strategy") or "", STRATEGIES, child(path, "strategy"))
    webhook = conversion.get("webhook")
    client = (webhook or {}).get("clientConfig")
    versions: Sequence[str] = (webhook or {}).get("conversionReviewVersions") or ()
    at, versions_at = child(path, "webhookClientConfig"), child(path, "conversionReviewVersions")
    if conversion.get("strategy") == "Webhook":
        errors += _client_errors(client, at, any_ca)
        return errors + _review_version_errors(versions, versions_at, recognized)
    if client is not None:
        errors.append(forbidden(at, _UNWANTED))
    if versions:
        errors.append(forbidden(versions_at, _UNWANTED))
    return errors


def validate_enum(value: str, accepted: Sequence[str], path: str) -> list[FieldError]:
    """Return an error if the value is empty or not among `accepted`.

    Args:
        value: the value.
        accepted: the allowed values, in the order in which the error lists them.
        path: the field path of `value`, for the error.
    """
    if not value:
        return [required(path)]
    return [] if value in accepted else [not_supported(path, value, accepted, typed=False)]


def has_recognized_version(conversion: Object | None) -> bool:
    """Return whether conversionReviewVersions is empty or includes a version that this server supports."""
    versions = ((conversion or {}).get("webhook") or {}).get("conversionReviewVersions") or ()
    return not versions or any(v in REVIEW_VERSIONS for v in versions)


def _client_errors(client: Object | None, path: str, any_ca: bool) -> list[FieldError]:
    if client is None:
        return [required(path, "required when strategy is set to Webhook")]
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errors = [required(path, "exactly one of url or service is required")]
    elif url is not None:
        errors = _url_errors(url, child(path, "url"))
    else:
        errors = _service_errors(service or {}, child(path, "service"))
    bundle = client.get("caBundle")
    if bundle and not any_ca and (text := ca_bundle_error(bundle)):
        errors.append(invalid(child(path, "caBundle"), bundle, text))
    return errors


def ca_bundle_error(bundle: str) -> str:
    """Return an error text for a Base64-encoded CA bundle, or "" if it has at least one certificate and all parse."""
    from cryptography import x509

    try:
        if x509.load_pem_x509_certificates(base64.b64decode(bundle)):
            return ""
    except (ValueError, binascii.Error):
        pass
    return "unable to load root certificates: unable to parse bytes as PEM block"


def _url_errors(url: str, path: str) -> list[FieldError]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_FORM}")]
    errors = []
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    user, at_sign, host = parts.netloc.rpartition("@")
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_FORM}"))
    if at_sign:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _service_errors(service: Object, path: str) -> list[FieldError]:
    errors = [required(child(path, key)) for key in ("name", "namespace") if not service.get(key)]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        errors.append(invalid(child(path, "port"), port, "port is not valid: must be between 1 and 65535, inclusive"))
    return errors + service_path_errors(service.get("path"), child(path, "path"))


def _review_version_errors(versions: Sequence[str], path: str, recognized: bool) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(index(path, i), version, "duplicate version"))
            continue
        seen.add(version)
        errors += [invalid(index(path, i), version, text) for text in is_dns1035_label(version)]
    if recognized and not seen.intersection(REVIEW_VERSIONS):
        errors.append(invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors
