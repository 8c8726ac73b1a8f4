"""Validation of projected volumes: several sources under one mount, which must not write the same file.

Upstream: pkg/apis/core/validation/validation.go, validateProjectionSources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from tetrapod.core.podspec.stored import stored_spec_has
from tetrapod.core.podspec.volume_sources import key_to_path
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import domain_prefixed_key, user_id
from tetrapod.core.validation.paths import not_reserved
from tetrapod.core.validation.signer_names import signer_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.names import is_dns1123_subdomain

_DUPLICATE: Final = "conflicting duplicate paths"
_KINDS: Final = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")
_TEN_MINUTES: Final = 600
_Part: TypeAlias = tuple[list[FieldError], str | None, str]
"""The errors of a part, the file that it creates (None for none), and the value to print if another part creates it
too.
"""
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def projected(source: Object, path: str, downward_file: Callable[[Object, str], list[FieldError]]) -> list[FieldError]:
    """Validate a projected volume source: each part is valid, and no two parts create the same file.

    An entry of `sources` has at most one kind of source.

    Args:
        path: the field path of the volume source, for the errors.
        downward_file: returns the errors of one item of a downwardAPI source, called with the item and the field path
            of the source.
    """
    errors: list[FieldError] = []
    files: set[str] = set()
    for i, projection in enumerate(source.get("sources") or ()):
        at = f"{path}.sources[{i}]"
        for part_errors, file, shown in _parts(projection, path, at, downward_file):
            errors += part_errors
            if file is not None:
                if file in files:
                    errors.append(field.invalid(path, shown, _DUPLICATE))
                files.add(file)
        if sum(projection.get(kind) is not None for kind in _KINDS) > 1:
            errors.append(field.forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


def _parts(
    projection: Object, volume: str, path: str, downward_file: Callable[[Object, str], list[FieldError]]
) -> Iterator[_Part]:
    """Validate one entry of `sources`, and yield a part for each file or group of errors.

    A part is its errors, the path of the file (None for none), and the value to print if the path is a duplicate.

    Args:
        projection: the entry.
        volume: the field path of the volume source, where upstream reports some errors.
        path: the field path of the entry.
        downward_file: returns the errors of one item of a downwardAPI source, called with the item and the field path
            of the source.
    """
    for kind in ("secret", "configMap"):
        if (keys := projection.get(kind)) is not None:
            yield from _keys(keys, f"{path}.{kind}")
    if (downward := projection.get("downwardAPI")) is not None:
        for item in downward.get("items") or ():
            yield downward_file(item, f"{path}.downwardAPI"), item.get("path") or None, item.get("path") or ""
    if (token := projection.get("serviceAccountToken")) is not None:
        yield _token(token, volume, f"{path}.serviceAccountToken"), None, ""
    if (bundle := projection.get("clusterTrustBundle")) is not None:
        file = bundle.get("path") or ""
        yield _trust_bundle(bundle, f"{path}.clusterTrustBundle"), file, file
    if (certificate := projection.get("podCertificate")) is not None:
        yield _certificate(certificate, f"{path}.podCertificate"), None, ""
        for key in ("credentialBundlePath", "keyPath", "certificateChainPath"):
            if certificate.get(key):
                yield [], certificate[key], certificate[key]


def _keys(source: Object, path: str) -> Iterator[_Part]:
    """Validate a Secret or ConfigMap of `sources`, and yield a part for each item, as `_parts` does.

    Args:
        path: the field path of the Secret or ConfigMap source, for the errors.
    """
    name = source.get("name") or ""
    if not name:
        yield [field.required(f"{path}.name")], None, ""
    for i, item in enumerate(source.get("items") or ()):
        yield key_to_path(item, f"{path}.items[{i}]"), item.get("path") or None, name


def _token(token: Object, volume: str, path: str) -> list[FieldError]:
    errors = []
    seconds = token.get("expirationSeconds") or 0
    if seconds < _TEN_MINUTES:
        errors.append(
            field.invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        )
    if seconds > 1 << 32:
        errors.append(
            field.invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        )
    # Upstream reports this error at the volume, not at the source.
    file = token.get("path") or ""
    if not file:
        errors.append(field.required(f"{volume}.path"))
    elif (reserved := not_reserved(file, f"{volume}.path")) and not stored_spec_has(_has_reserved_path):
        errors += reserved
    return errors + user_id(token.get("user"), f"{path}.user")


def _has_reserved_path(spec: Object) -> bool:
    """Return whether a projected token of a pod has a path that is empty or not allowed."""
    sources = (
        source.get("serviceAccountToken")
        for volume in spec.get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
    )
    return any(token is not None and not_reserved(token.get("path") or "", "") for token in sources)


def _trust_bundle(bundle: Object, path: str) -> list[FieldError]:
    name, signer = bundle.get("name"), bundle.get("signerName")
    errors: list[FieldError] = []
    if name is not None and signer is not None:
        errors.append(
            field.invalid(path, internal("TrustBundle", bundle), "only one of name and signerName may be used")
        )
    elif name is not None:
        if not name:
            errors.append(field.required(f"{path}.name", "must be a valid object name"))
        last = name.rpartition(":")[2]
        errors += [
            field.invalid(f"{path}.name", name, f"not a valid clustertrustbundlename: {t}")
            for t in is_dns1123_subdomain(last)
        ]
        if bundle.get("labelSelector") is not None:
            text = "labelSelector must be unset if name is specified"
            errors.append(field.invalid(f"{path}.labelSelector", bundle["labelSelector"], text))
    elif signer is not None:
        if not signer:
            errors.append(field.required(f"{path}.signerName", "must be a valid signer name"))
        errors += signer_name(signer, f"{path}.signerName")
        errors += validate_label_selector(bundle.get("labelSelector"), f"{path}.labelSelector")
    else:
        errors.append(field.required(path, "either name or signerName must be specified"))
    if not bundle.get("path"):
        errors.append(field.required(f"{path}.path"))
    errors += user_id(bundle.get("user"), f"{path}.user")
    return errors + not_reserved(bundle.get("path") or "", f"{path}.path")


def _certificate(certificate: Object, path: str) -> list[FieldError]:
    errors = signer_name(certificate.get("signerName") or "", f"{path}.signerName")
    for key in certificate.get("userAnnotations") or ():
        errors += domain_prefixed_key(key.lower(), f"{path}.userAnnotations")
    errors += user_id(certificate.get("user"), f"{path}.user")
    key = certificate.get("keyType") or ""
    if key not in _KEY_TYPES:
        errors.append(field.not_supported(f"{path}.keyType", key, _KEY_TYPES, typed=False))
    seconds = certificate.get("maxExpirationSeconds")
    if seconds is not None and seconds < 3600:
        errors.append(
            field.invalid(f"{path}.maxExpirationSeconds", seconds, "if provided, maxExpirationSeconds must be >= 3600")
        )
    longest = 86400 if (certificate.get("signerName") or "").startswith("kubernetes.io/") else 91 * 86400
    if seconds is not None and seconds > longest:
        errors.append(
            field.invalid(
                f"{path}.maxExpirationSeconds", seconds, f"if provided, maxExpirationSeconds must be <= {longest}"
            )
        )
    files = {key: certificate.get(key) or "" for key in ("credentialBundlePath", "keyPath", "certificateChainPath")}
    if not any(files.values()):
        text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(field.required(path, text))
    for name, file in files.items():
        errors += not_reserved(file, f"{path}.{name}") if file else []
    return errors
