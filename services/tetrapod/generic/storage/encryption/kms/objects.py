"""The stored message of a value encrypted with a KMS plugin, and its validation.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope.go
"""

from __future__ import annotations

import hashlib
from typing import Final

from google.protobuf.message import DecodeError

from tetrapod.generic.storage.encryption.kms import kms_pb2 as pb
from tetrapod.generic.storage.encryption.transformer import TransformError
from tetrapod.machinery import field
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.names import is_dns1123_subdomain

LARGEST_KEY_ID: Final = 1024
LARGEST_SOURCE: Final = 1024
LARGEST_ANNOTATIONS: Final = 32 * 1024
SEED: Final = pb.HKDF_SHA256_XNONCE_AES_GCM_SEED


def decoded(data: bytes) -> pb.EncryptedObject:
    """Parse and validate the stored message of a value. Raises TransformError if it is malformed or invalid."""
    try:
        obj = pb.EncryptedObject.FromString(data)
    except DecodeError:
        raise TransformError("proto: cannot parse invalid wire-format data") from None
    check(obj)
    return obj


def check(obj: pb.EncryptedObject, *, with_data: bool = True) -> None:
    """Validate a message. Raises TransformError with upstream's text if it is invalid.

    Args:
        with_data: whether the message must contain encrypted data.
    """
    if obj.encryptedDEKSourceType not in (pb.AES_GCM_KEY, SEED):
        raise TransformError(f"unknown encryptedDEKSourceType: {obj.encryptedDEKSourceType}")
    if with_data and not obj.encryptedData:
        raise TransformError("encrypted data is empty")
    if error := _source_error(obj.encryptedDEKSource):
        raise TransformError(f"failed to validate encrypted DEK source: {error}")
    if key_error := key_id_error(obj.keyID):
        raise TransformError(f"failed to validate key id: {key_error[1]}")
    if error := _annotations_error(obj):
        raise TransformError(f"failed to validate annotations: {error}")


def key_id_error(key_id: str) -> tuple[str, str] | None:
    """Return the error of a plugin's key ID as its metric label and its text, or None if it is valid."""
    size = len(key_id.encode())
    if not size:
        return "empty", "keyID is empty"
    if size > LARGEST_KEY_ID:
        return "too_long", f"keyID is {size} bytes, which exceeds the max size of {LARGEST_KEY_ID}"
    return None


def _source_error(source: bytes) -> str:
    if not source:
        return "encrypted DEK source is empty"
    if len(source) > LARGEST_SOURCE:
        return f"encrypted DEK source is {len(source)} bytes, which exceeds the max size of {LARGEST_SOURCE}"
    return ""


def _annotations_error(obj: pb.EncryptedObject) -> str:
    texts = [str(error) for name in obj.annotations if (error := _domain_error(name)) is not None]
    size = sum(len(name.encode()) + len(value) for name, value in obj.annotations.items())
    if size > LARGEST_ANNOTATIONS:
        texts.append(f"total size of annotations is {size}, which exceeds the max size of {LARGEST_ANNOTATIONS}")
    return aggregate_errors(texts)


def _domain_error(name: str) -> field.FieldError | None:
    """Return the error of an annotation's name, or None if it is a fully qualified domain (at least two labels)."""
    if not name:
        return field.required("annotations")
    domain = name.removesuffix(".")
    if errors := is_dns1123_subdomain(domain):
        return field.invalid("annotations", domain, errors[0])
    if "." not in domain:
        return field.invalid("annotations", domain, "should be a domain with at least two segments separated by dots")
    return None


def source_key(obj: pb.EncryptedObject) -> bytes:
    """Return the cache key of the encrypted seed in `obj`, a hash of the seed, its type, key ID and annotations."""
    digest = hashlib.sha256()
    fields = [bytes([obj.encryptedDEKSourceType]), obj.encryptedDEKSource, obj.keyID.encode()]
    for name in sorted(obj.annotations):
        fields += [name.encode(), obj.annotations[name]]
    for field_bytes in fields:
        digest.update(len(field_bytes).to_bytes(4, "big") + field_bytes)
    return digest.digest()
