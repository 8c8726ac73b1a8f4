"""Checks that the files shown in docs/how-to/authentication.md are valid, apart from placeholders that the reader must
fill in.
"""

from __future__ import annotations

import re
from pathlib import Path

from tetrapod.auth.authorizers.configuration import load_configuration as load_authorization
from tetrapod.auth.authorizers.validation import validate as validate_authorization
from tetrapod.auth.oidc.configuration import load_configuration as load_authentication
from tetrapod.auth.oidc.validation import validate as validate_authentication

TEXT = (Path(__file__).parents[3] / "docs" / "how-to" / "authentication.md").read_text()
BLOCKS: list[bytes] = [text.encode() for text in re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)]


def block(kind: bytes) -> bytes:
    return next(found for found in BLOCKS if b"kind: " + kind in found)


def test_the_authentication_configuration_lacks_only_a_certificate() -> None:
    errors = validate_authentication(load_authentication(block(b"AuthenticationConfiguration")))
    assert [error.field for error in errors] == ["jwt[0].issuer.certificateAuthority"]


def test_the_authorization_configuration_lacks_only_a_file() -> None:
    errors = validate_authorization(load_authorization(block(b"AuthorizationConfiguration")))
    assert [error.field for error in errors] == ["authorizers[1].connectionInfo.kubeConfigFile"]
