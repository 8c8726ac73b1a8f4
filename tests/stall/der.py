"""Certificate requests in DER, of so many parts that cryptography's builders would take minutes to assemble them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_TEXT: Final = 0x0C
_OCTETS: Final = 0x04
_BITS: Final = 0x03
_INTEGER: Final = 0x02
_OID: Final = 0x06
_ATTRIBUTES: Final = 0xA0
_DNS_NAME: Final = 0x82
_COMMON_NAME: Final = bytes.fromhex("550403")
_ORGANIZATION: Final = bytes.fromhex("55040a")
_ALTERNATIVE_NAMES: Final = bytes.fromhex("551d11")
_EXTENSION_REQUEST: Final = bytes.fromhex("2a864886f70d01090e")
_ECDSA_SHA256: Final = bytes.fromhex("2a8648ce3d040302")
_ENTERPRISES: Final = bytes.fromhex("2b06010401")


def element(tag: int, *contents: bytes) -> bytes:
    """Return an element of the concatenated contents."""
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(length)]) + length + content


def private_oid(number: int) -> bytes:
    """Return the content of an OID below `enterprises`. Its length is the same for all numbers below 2^21."""
    return _ENTERPRISES + bytes([0x80 | number >> 14, 0x80 | number >> 7 & 0x7F, number & 0x7F])


def name(organizations: Iterable[str] = ("system:nodes",), common_name: str = "system:node:a") -> bytes:
    """Return a Name of many organizations and one common name."""
    parts = [(_ORGANIZATION, text) for text in organizations] + [(_COMMON_NAME, common_name)]
    return element(_SEQUENCE, *(_relative(oid, text) for oid, text in parts))


def _relative(oid: bytes, text: str) -> bytes:
    return element(_SET, element(_SEQUENCE, element(_OID, oid), element(_TEXT, text.encode())))


def attributes(count: int) -> list[bytes]:
    """Return attributes of different types, in the order of a SET OF."""
    value = element(_SET, element(_TEXT, b"v"))
    return [element(_SEQUENCE, element(_OID, private_oid(number)), value) for number in range(count)]


def extension_request(extensions: Iterable[bytes]) -> bytes:
    """Return the attribute that asks for extensions."""
    return element(_SEQUENCE, element(_OID, _EXTENSION_REQUEST), element(_SET, element(_SEQUENCE, *extensions)))


def extensions(count: int) -> list[bytes]:
    """Return extensions of different types."""
    value = element(_OCTETS, element(_TEXT, b"v"))
    return [element(_SEQUENCE, element(_OID, private_oid(number)), value) for number in range(count)]


def alternative_names(count: int) -> bytes:
    """Return the extension of many DNS names."""
    names = element(_SEQUENCE, *(element(_DNS_NAME, b"a%d.b" % number) for number in range(count)))
    return element(_SEQUENCE, element(_OID, _ALTERNATIVE_NAMES), element(_OCTETS, names))


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def signing_request(attributes: Sequence[bytes] = (), subject: bytes | None = None) -> bytes:
    """Return a PKCS#10 request with a valid signature, as PEM."""
    public = _key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    version = element(_INTEGER, b"\0")
    info = element(
        _SEQUENCE, version, name() if subject is None else subject, public, element(_ATTRIBUTES, *attributes)
    )
    signature = _key().sign(info, ec.ECDSA(hashes.SHA256()))
    algorithm = element(_SEQUENCE, element(_OID, _ECDSA_SHA256))
    der = element(_SEQUENCE, info, algorithm, element(_BITS, b"\0", signature))
    return pem("CERTIFICATE REQUEST", der)


def pem(kind: str, der: bytes) -> bytes:
    """Return a PEM block."""
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (kind.encode(), base64.encodebytes(der), kind.encode())
