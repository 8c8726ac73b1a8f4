"""Checks that a key file without keys is rejected at start, in an error that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tetrapod.apps.options.authentication import AuthenticationFlags, ServiceAccountFlags
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.auth_service import auth_options
from tetrapod.auth.tokens.keys import load_signing_key
from tetrapod.generic.authentication.certificates import CertificatePool

BROKEN = b"-----BEGIN RSA PRIVATE KEY-----\nZm9v\n-----END RSA PRIVATE KEY-----\n"
KEY = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
)


def with_keys(**files: Any) -> Options:
    return Options(authentication=AuthenticationFlags(service_accounts=ServiceAccountFlags(**files)))


def rejection(options: Options) -> str:
    with pytest.raises(click.ClickException) as rejected:
        auth_options(options, CertificatePool(b""), CertificatePool(b""), reserve_services=False)
    return rejected.value.message


def test_the_file_with_a_broken_key_is_named(tmp_path: Path) -> None:
    broken, sound = tmp_path / "broken", tmp_path / "sound"
    broken.write_bytes(BROKEN)
    sound.write_bytes(KEY)
    assert rejection(with_keys(signing_key_file=str(broken))) == (
        f"failed to parse service-account-issuer-key-file: error reading private key file {broken}: "
        "data does not contain a valid RSA or ECDSA private key"
    )
    verifying = with_keys(signing_key_file=str(sound), key_file=(str(sound), str(broken)))
    assert (
        rejection(verifying)
        == f"error reading public key file {broken}: data does not contain any valid RSA or ECDSA public keys"
    )


def test_a_key_is_found_behind_blocks_that_are_invalid() -> None:
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    assert load_signing_key(parameters + BROKEN + KEY).key_size == 256
