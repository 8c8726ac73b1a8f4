"""Tests of CA bundles, which are read as Go reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tetrapod.generic.certificates.bundles import UnusableBundle, authorities
from tetrapod.generic.certificates.pki import write_pki

BROKEN = b"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n"


def test_every_parsable_certificate_in_a_bundle_is_trusted(tmp_path: Path) -> None:
    good = write_pki(tmp_path, ["localhost"]).ca.read_bytes()
    found = authorities(b"# a comment\n" + BROKEN + KEY + good + b"rest")
    assert found.strip() == good.decode().strip()


@pytest.mark.parametrize(
    ("bundle", "text"),
    [
        (b"hello", "unable to parse bytes as PEM block"),
        (KEY + b"rest", "unable to parse bytes as PEM block"),
        (KEY, "no valid certificate authority data seen"),
        (BROKEN, "failed to parse certificate: x509: malformed certificate"),
    ],
)
def test_an_empty_bundle_is_rejected_with_upstreams_message(bundle: bytes, text: str) -> None:
    with pytest.raises(UnusableBundle, match=f"^unable to load root certificates: {text}$"):
        authorities(bundle)
