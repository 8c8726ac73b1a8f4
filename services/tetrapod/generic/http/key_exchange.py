"""Go's numbers of key exchange mechanisms, and their translation to OpenSSL's names of groups.

Upstream: staging/src/k8s.io/component-base/cli/flag/curves_flag.go
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final

from tetrapod.generic.http.openssl import set_groups
from tetrapod.machinery.golang.quoting import go_quote

_GROUPS: Final = {
    4588: "X25519MLKEM768",
    4587: "SecP256r1MLKEM768",
    4589: "SecP384r1MLKEM1024",
    29: "X25519",
    23: "P-256",
    24: "P-384",
    25: "P-521",
}
"""OpenSSL's names by Go's numbers, in Go's order of preference."""


def openssl_groups(numbers: Sequence[str]) -> str:
    """Return OpenSSL's names of the groups for the value of --tls-curve-preferences, joined by colons; "" for none.

    Raises:
        ValueError: a number is malformed, out of range or given twice (with upstream's text), or this OpenSSL does not
            know the group.
    """
    chosen = set[int]()
    for text in numbers:
        number = _parse_number(text)
        if not 0 < number < 65536:
            raise ValueError(f"curve preference {number} is out of range (must be 1-65535)")
        if number in chosen:
            raise ValueError(f"duplicate curve preference {number}")
        if number not in _GROUPS or not _is_supported(_GROUPS[number]):
            raise ValueError(f"curve preference {number} is not supported by {ssl.OPENSSL_VERSION}")
        chosen.add(number)
    return ":".join(name for number, name in _GROUPS.items() if number in chosen)


def _parse_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'invalid argument {go_quote(text)} for "--tls-curve-preferences" flag') from None


def _is_supported(group: str) -> bool:
    return set_groups(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), group)
