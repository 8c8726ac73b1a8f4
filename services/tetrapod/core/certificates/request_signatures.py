"""The check of a certificate request's signature, with the algorithms that Go accepts for it.

cryptography's own check rejects SHA-1, which Go accepts in certificate requests, and accepts algorithms that Go lacks.
Upstream: Go's crypto/x509/x509.go, CertificateRequest.CheckSignature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.x509 import CertificateSigningRequest

_RSA: Final = "1.2.840.113549.1.1."
_PSS: Final = _RSA + "10"
_ED25519: Final = "1.3.101.112"
_ECDSA: Final = "1.2.840.10045.4."
_ALGORITHMS: Final = {
    _RSA + "4": ("RSA", "md5"),
    _RSA + "5": ("RSA", "sha1"),
    "1.3.14.3.2.29": ("RSA", "sha1"),
    _RSA + "11": ("RSA", "sha256"),
    _RSA + "12": ("RSA", "sha384"),
    _RSA + "13": ("RSA", "sha512"),
    "1.2.840.10040.4.3": ("DSA", "sha1"),
    "2.16.840.1.101.3.4.3.2": ("DSA", "sha256"),
    _ECDSA + "1": ("ECDSA", "sha1"),
    _ECDSA + "3.2": ("ECDSA", "sha256"),
    _ECDSA + "3.3": ("ECDSA", "sha384"),
    _ECDSA + "3.4": ("ECDSA", "sha512"),
    _ED25519: ("Ed25519", ""),
}
_PSS_HASHES: Final = ("sha256", "sha384", "sha512")
GO_CURVES: Final = frozenset({"secp224r1", "secp256r1", "secp384r1", "secp521r1"})
"""The elliptic curves that Go knows."""
_SHORTEST_RSA: Final = 1024
_UNIMPLEMENTED: Final = "x509: cannot verify signature: algorithm unimplemented"


def signature_error(request: CertificateSigningRequest) -> str:
    """Return Go's error text for a certificate request whose signature is invalid or unsupported; "" if it is valid."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

    try:
        key = request.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return _UNIMPLEMENTED
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in GO_CURVES:
        return "x509: unsupported elliptic curve"
    oid = request.signature_algorithm_oid.dotted_string
    expected, hash_name = ("RSA", _pss_hash(request)) if oid == _PSS else _ALGORITHMS.get(oid, ("", ""))
    if not hash_name and expected != "Ed25519":
        return _UNIMPLEMENTED
    if hash_name == "md5":
        return "x509: cannot verify signature: insecure algorithm MD5-RSA"
    signature, signed = request.signature, request.tbs_certrequest_bytes
    algorithm = {h.name: h for h in (hashes.SHA1(), hashes.SHA256(), hashes.SHA384(), hashes.SHA512())}.get(hash_name)
    try:
        if isinstance(key, rsa.RSAPublicKey) and expected == "RSA" and algorithm is not None:
            if key.key_size < _SHORTEST_RSA:
                return _insecure(key)
            form = padding.PSS(padding.MGF1(algorithm), algorithm.digest_size) if oid == _PSS else padding.PKCS1v15()
            key.verify(signature, signed, form, algorithm)
        elif isinstance(key, ec.EllipticCurvePublicKey) and expected == "ECDSA" and algorithm is not None:
            key.verify(signature, signed, ec.ECDSA(algorithm))
        elif isinstance(key, ed25519.Ed25519PublicKey) and expected == "Ed25519":
            key.verify(signature, signed)
        else:
            return _mismatch(expected, key)
    except InvalidSignature:
        return "crypto/rsa: verification error" if expected == "RSA" else f"x509: {expected} verification failure"
    return ""


def _pss_hash(request: CertificateSigningRequest) -> str:
    """Return the name of the hash of an RSA-PSS signature, such as "sha256".

    The result is "" if Go does not support the parameters: mask and salt must fit the hash.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import padding

    try:
        parameters, algorithm = request.signature_algorithm_parameters, request.signature_hash_algorithm
    except (ValueError, UnsupportedAlgorithm):
        return ""
    if not isinstance(parameters, padding.PSS) or algorithm is None or algorithm.name not in _PSS_HASHES:
        return ""
    mask = parameters.mgf._algorithm.name
    return algorithm.name if mask == algorithm.name and parameters._salt_length == algorithm.digest_size else ""


def _insecure(key: RSAPublicKey) -> str:
    page = "https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size"
    return f"crypto/rsa: {key.key_size}-bit keys are insecure (see {page})"


def _mismatch(expected: str, key: object) -> str:
    """Return the error text for a key that is not of the type that the signature's algorithm needs."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    for go_type, kind in (
        ("*rsa.PublicKey", rsa.RSAPublicKey),
        ("*ecdsa.PublicKey", ec.EllipticCurvePublicKey),
        ("ed25519.PublicKey", ed25519.Ed25519PublicKey),
    ):
        if isinstance(key, kind):
            return (
                f"x509: signature algorithm specifies an {expected} public key, but have public key of type {go_type}"
            )
    return _UNIMPLEMENTED
