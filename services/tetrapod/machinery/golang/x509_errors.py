"""Go's error texts for malformed certificates and certificate requests.

The library that parses them does not provide these texts.

Upstream: crypto/x509/parser.go (parseCertificate), encoding/asn1/asn1.go (parseField, parseTagAndLength).
"""

from __future__ import annotations

from typing import Final, NamedTuple

_INTEGER: Final = 0x02
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_MALFORMED: Final = "x509: malformed certificate"
TRAILING: Final = "x509: trailing data"
_NO_PARAMETERS: Final = (
    "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 "
    "timeType:0 set:false omitEmpty:false}"
)


class _Header(NamedTuple):
    """The header of a DER element.

    Attributes:
        tag: the byte of the tag.
        start: the offset of the content.
        size: the length of the content in bytes.
    """

    tag: int
    start: int
    size: int


class _HeaderError(ValueError):
    pass


def _header(data: bytes, at: int) -> _Header:
    """Parse a DER header: a tag of one byte and a length.

    Args:
        data: the encoded bytes.
        at: the offset of the header.

    Raises:
        _HeaderError: the header is malformed; the text is encoding/asn1's.
    """
    if at + 1 >= len(data):
        raise _HeaderError("asn1: syntax error: truncated tag or length")
    size, start = data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        if not count:
            raise _HeaderError("asn1: syntax error: indefinite length found (not DER)")
        if start + count > len(data):
            raise _HeaderError("asn1: syntax error: truncated tag or length")
        if not data[start]:
            raise _HeaderError("asn1: structure error: superfluous leading zeros in length")
        size, start = int.from_bytes(data[start : start + count]), start + count
        if size >= 1 << 31:
            raise _HeaderError("asn1: structure error: length too large")
        if size < 0x80:
            raise _HeaderError("asn1: structure error: non-minimal length")
    return _Header(data[at], start, size)


class _Reader:
    """A reader like Go's cryptobyte.String: each read removes an element from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def next_is(self, tag: int) -> bool:
        """Return whether the next element has this tag. The element is not removed."""
        return self.data[:1] == bytes([tag])

    def read_element(self, tag: int) -> bytes | None:
        """Remove the next element and return its content.

        The result is None, and nothing is removed, if the element has another tag or is malformed.
        """
        try:
            header = _header(self.data, 0)
        except _HeaderError:
            return None
        end = header.start + header.size
        if header.tag != tag or end > len(self.data):
            return None
        content, self.data = self.data[header.start : end], self.data[end:]
        return content


def certificate_error(der: bytes) -> str:
    """Return Go's error text for a DER certificate that Python's library could not parse.

    It is `x509: malformed certificate` if no error is found in the outer structures.
    """
    outer = _Reader(der)
    content = outer.read_element(_SEQUENCE)
    if content is None:
        return _MALFORMED
    certificate = _Reader(content)
    signed = certificate.read_element(_SEQUENCE)
    if signed is None:
        return "x509: malformed tbs certificate"
    tbs = _Reader(signed)
    return _head_error(tbs, certificate) or _parts_error(tbs) or (TRAILING if outer.data else _MALFORMED)


def _head_error(tbs: _Reader, certificate: _Reader) -> str:
    """Return Go's error text for version, serial number or algorithms of a certificate, or "".

    Args:
        tbs: the reader of the content of tbsCertificate, from which the elements up to the algorithm are removed.
        certificate: the reader of the certificate after tbsCertificate, from which the outer algorithm is removed.
    """
    if tbs.next_is(_VERSION):
        version = _Reader(tbs.read_element(_VERSION) or b"").read_element(_INTEGER)
        if not version or version[0] & 0x80:
            return "x509: malformed version"
        if int.from_bytes(version) > 2:
            return "x509: invalid version"
    serial = tbs.read_element(_INTEGER)
    if not serial:
        return "x509: malformed serial number"
    if serial[0] & 0x80:
        return "x509: negative serial number"
    algorithm = tbs.read_element(_SEQUENCE)
    if algorithm is None:
        return "x509: malformed signature algorithm identifier"
    outer = certificate.read_element(_SEQUENCE)
    if outer is None:
        return "x509: malformed algorithm identifier"
    return "" if outer == algorithm else "x509: inner and outer signature algorithm identifiers don't match"


def _parts_error(tbs: _Reader) -> str:
    for element in ("issuer", "validity", "issuer", "spki"):  # upstream calls the subject "issuer" here, too
        if tbs.read_element(_SEQUENCE) is None:
            return f"x509: malformed {element}"
    return ""


def request_error(der: bytes) -> str:
    """Return Go's error text for a DER certificate request that Python's library could not parse.

    Only the outer structures are examined; for errors further inside, the text is a general one.
    """
    try:
        return _structure_error(der)
    except _HeaderError as error:
        return str(error)


def _structure_error(der: bytes) -> str:
    """Return the error in the outer structures of a certificate request, or a general text.

    Raises:
        _HeaderError: a header is malformed.
    """
    data, at = der, 0
    for struct in ("certificateRequest", "tbsCertificateRequest"):
        header, text = _field(data, at, _SEQUENCE, struct)
        if text:
            return text
        data, at = data[header.start : header.start + header.size], 0
        if struct == "certificateRequest" and header.start + header.size < len(der) and not _unread(data):
            return "asn1: syntax error: trailing data"
    header, text = _field(data, at, _INTEGER, "int")
    return text or _unread(data[header.start + header.size :]) or "asn1: structure error: sequence tag mismatch"


def _unread(data: bytes) -> str:
    """Return Go's error text for bytes that do not begin with a complete DER element, or "" if they do.

    Raises:
        _HeaderError: the header of the element is malformed.
    """
    if not data:
        return "asn1: syntax error: sequence truncated"
    header = _header(data, 0)
    return "asn1: syntax error: data truncated" if header.start + header.size > len(data) else ""


def _field(data: bytes, at: int, tag: int, type_name: str) -> tuple[_Header, str]:
    if at >= len(data):
        return _Header(0, 0, 0), "asn1: syntax error: sequence truncated"
    header = _header(data, at)
    if header.tag != tag:
        header_text = (
            f"{{class:{header.tag >> 6} tag:{header.tag & 0x1F} length:{header.size} "
            f"isCompound:{str(bool(header.tag & 0x20)).lower()}}}"
        )
        text = f"tags don't match ({tag & 0x1F} vs {header_text}) {_NO_PARAMETERS} {type_name} @{header.start}"
        return header, f"asn1: structure error: {text}"
    return header, _unread(data[at:])
