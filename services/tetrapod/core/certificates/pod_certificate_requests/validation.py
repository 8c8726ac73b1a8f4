"""Validation of PodCertificateRequest.

Upstream: pkg/apis/certificates/validation/validation.go.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from tetrapod.core.certificates.alternative_names import alternative_names
from tetrapod.core.certificates.request_signatures import GO_CURVES, signature_error
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE, dns_subdomain, domain_prefixed_key
from tetrapod.core.validation.signer_names import signer_name
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import ANNOTATIONS_SIZE_LIMIT, annotations_size

_LONGEST_UID: Final = 128
_SHORTEST: Final = 3600
_LONGEST: Final = 7_862_400
_LONGEST_KUBERNETES: Final = 86_400
_LARGEST: Final = 10 * 1024
_STUB: Final = "spec.stubPKCS10Request"
_KEY: Final = "spec.pkixPublicKey"
_PROOF: Final = "spec.proofOfPossession"
ONLY_V1BETA1: Final = ("pkixPublicKey", "proofOfPossession")
"""The fields of the spec that only v1beta1 has."""
_ONE_WAY: Final = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
_UNKNOWN_KEY: Final = "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
_CURVES: Final = frozenset({"secp256r1", "secp384r1", "secp521r1"})
_RSA_SIZES: Final = (3072, 4096)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new PodCertificateRequest.

    The signer name is valid, and so are name and UID of pod, service account and node. maxExpirationSeconds is at least
    an hour and at most 91 days, or one day for signers of Kubernetes. `_possession` checks the proof.
    """
    spec = obj.get("spec") or {}
    signer = spec.get("signerName") or ""
    errors = signer_name(signer, "spec.signerName")
    annotations, path = spec.get("unverifiedUserAnnotations") or {}, "spec.unverifiedUserAnnotations"
    for name in annotations:
        errors += domain_prefixed_key(name.lower(), path)
    if annotations_size(annotations) > ANNOTATIONS_SIZE_LIMIT:
        errors.append(field.too_long(path, ANNOTATIONS_SIZE_LIMIT))
    for kind in ("pod", "serviceAccount", "node"):
        name = spec.get(f"{kind}Name") or ""
        errors += dns_subdomain(field.TypedText(name) if kind == "node" else name, f"spec.{kind}Name")
        errors += _uid(spec.get(f"{kind}UID") or "", f"spec.{kind}UID")
    seconds, path = spec.get("maxExpirationSeconds"), "spec.maxExpirationSeconds"
    if seconds is None:
        return [*errors, field.required(path, "must be set")]
    host = signer.partition("/")[0]
    most = _LONGEST_KUBERNETES if host == "kubernetes.io" or host.endswith(".kubernetes.io") else _LONGEST
    if not _SHORTEST <= seconds <= most:
        errors.append(field.invalid(path, seconds, f"must be in the range [{_SHORTEST}, {most}]"))
    return errors + _possession(spec)


def _uid(uid: str, path: str) -> list[FieldError]:
    if not uid:
        return [field.invalid(path, uid, "must not be empty")]
    return [field.too_long(path, _LONGEST_UID)] if len(uid) > _LONGEST_UID else []


def _possession(spec: Object) -> list[FieldError]:
    """Validate the proof that the kubelet holds the private key.

    The proof is either stubPKCS10Request, or pkixPublicKey with proofOfPossession.
    """
    stub, key, proof = (_bytes(spec.get(name)) for name in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession"))
    if stub and not key and not proof:
        return _stub(stub)
    if key and proof and not stub:
        return _proof(key, proof, spec.get("podUID") or "", spec["pkixPublicKey"])
    return [field.omitted("spec", _ONE_WAY)]


def _bytes(value: str | None) -> bytes:
    try:
        return base64.b64decode(value or "")
    except (ValueError, binascii.Error):
        return b""


def _stub(content: bytes) -> list[FieldError]:
    """Validate stubPKCS10Request: a PKCS#10 request in DER of at most 10 KiB.

    Its key has a supported type, and its signature is valid. Its other content is not checked.
    """
    from cryptography import x509  # imported late: only clusters that sign requests need it
    from cryptography.exceptions import UnsupportedAlgorithm

    if len(content) > _LARGEST:
        return [field.too_long(_STUB, _LARGEST)]
    try:
        parsed = x509.load_der_x509_csr(content)
        key = _go_key(parsed.public_key())
        alternative_names(parsed)
    except (ValueError, UnsupportedAlgorithm):
        return [field.omitted(_STUB, "must be a valid PKCS#10 CSR")]
    if errors := _key_error(key, _STUB, "P256, P384, or P521", None):
        return errors
    return [field.omitted(_STUB, "invalid signature")] if signature_error(parsed) else []


def _go_key(key: Any) -> Any:
    """Return a public key, or raise ValueError if its curve is one that Go does not know."""
    from cryptography.hazmat.primitives.asymmetric import ec

    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in GO_CURVES:
        raise ValueError("x509: unsupported elliptic curve")
    return key


def _key_error(key: Any, path: str, curves: str, shown: str | None) -> list[FieldError]:
    """Return an error if the type, curve or size of a public key is not supported, else [].

    Args:
        key: the key, an object of the package cryptography.
        path: the field path of the error.
        curves: the supported curves, for the error text.
        shown: the value to print for an unknown key type; None omits it.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, ed25519.Ed25519PublicKey):
        return []
    if isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name in _CURVES:
            return []
        name = f"curve P-{key.curve.key_size}"
        return [field.invalid(path, name, f"elliptic public keys must use curve {curves}")]
    if isinstance(key, rsa.RSAPublicKey):
        size = (key.key_size + 7) // 8 * 8
        text = "RSA keys must have modulus size 3072 or 4096"
        return [] if size in _RSA_SIZES else [field.invalid(path, f"{size}-bit modulus", text)]
    return [field.omitted(path, _UNKNOWN_KEY) if shown is None else field.invalid(path, shown, _UNKNOWN_KEY)]


def _proof(content: bytes, proof: bytes, uid: str, shown: str) -> list[FieldError]:
    """Validate pkixPublicKey and proofOfPossession: a supported key that signed the pod's uid, each at most 10 KiB.

    Args:
        content: the DER-encoded public key.
        proof: the signature.
        uid: the pod's uid.
        shown: spec.pkixPublicKey, to print in errors.
    """
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    for value, path in ((content, _KEY), (proof, _PROOF)):
        if len(value) > _LARGEST:
            return [field.too_long(path, _LARGEST)]
    try:
        key = _go_key(load_der_public_key(content))
    except (ValueError, UnsupportedAlgorithm):
        return [field.invalid(_KEY, shown, "must be a valid PKIX-serialized public key")]
    if errors := _key_error(key, _KEY, "P256 or P384", shown):
        return errors
    try:
        _verify(key, proof, uid.encode())
    except InvalidSignature:
        return [field.omitted(_PROOF, "could not verify proof-of-possession signature")]
    return []


def _verify(key: Any, proof: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

    if isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(proof, signed)
    elif isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(proof, signed, ec.ECDSA(hashes.SHA256()))
    else:
        key.verify(proof, signed, padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.AUTO), hashes.SHA256())


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of the spec, which is immutable."""
    spec = new.get("spec") or {}
    if same(spec, old.get("spec")):
        return []
    return [field.invalid("spec", internal("PodCertificateRequestSpec", spec), IMMUTABLE)]
