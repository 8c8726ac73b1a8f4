"""Subordinate certificate authorities, for tests of certificate chains."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tetrapod.generic.certificates.authority import Authority


def subordinate(parent: Authority, name: str, *, ca: bool = True) -> Authority:
    """Return an authority signed by `parent`.

    With `ca=False` its certificate is marked as not a CA, although it can still sign.
    """
    signer = x509.load_pem_x509_certificate(parent.certificate_pem)
    signing_key = serialization.load_pem_private_key(parent.key_pem, None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(signer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
    )
    return Authority(builder.sign(signing_key, hashes.SHA256()), key)
