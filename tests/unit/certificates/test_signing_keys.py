"""The CAs of the certificate signing controller, from the flags."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from tetrapod.apps.options.signing import SigningFlags
from tetrapod.apps.wiring.signing import signing_keys
from tetrapod.generic.certificates.pki import Pki, write_pki

PASSWORD = BestAvailableEncryption(b"secret")


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return write_pki(tmp_path, ["localhost"])


def test_an_encrypted_key_is_rejected_with_its_file(pki: Pki, tmp_path: Path) -> None:
    key = tmp_path / "encrypted.key"
    key.write_bytes(ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, PASSWORD))
    flags = SigningFlags(cert_file=str(pki.client_ca), key_file=str(key))
    with pytest.raises(click.ClickException, match=f'error reading CA private key file "{key}": '):
        signing_keys(flags)


def test_the_ca_of_the_flags_is_used_for_each_signer(pki: Pki) -> None:
    keys = signing_keys(SigningFlags(cert_file=str(pki.client_ca), key_file=str(pki.key("client-ca"))))
    assert {keys.authority(signer)[0].public_bytes(Encoding.PEM) for signer in keys.files} == {
        pki.client_ca.read_bytes()
    }
