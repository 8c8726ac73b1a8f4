"""Tests of errors for invalid certificates. The texts are Go's, recorded from kube-apiserver v1.37.1."""

from __future__ import annotations

import base64

import pytest

from tetrapod.machinery.golang import x509_errors


@pytest.mark.parametrize(
    ("der", "text"),
    [
        (b"", "x509: malformed certificate"),
        (b"\0\0\0", "x509: malformed certificate"),
        (b"\x31\0", "x509: malformed certificate"),
        (b"\x30\x80", "x509: malformed certificate"),
        (b"\x30\x82\x01", "x509: malformed certificate"),
        (b"\x30\0", "x509: malformed tbs certificate"),
        (b"\x30\x03\x02\x01\0", "x509: malformed tbs certificate"),
        (b"\x30\x02\x30\0", "x509: malformed serial number"),
        (b"\x30\x0b\x30\x09\xa0\x03\x02\x01\x05\x02\x02\x01\x01", "x509: invalid version"),
        (b"\x30\x05\x30\x03\x02\x01\xff", "x509: negative serial number"),
        (b"\x30\x05\x30\x03\x02\x01\x01", "x509: malformed signature algorithm identifier"),
    ],
)
def test_malformed_certificates_have_the_errors_of_go(der: bytes, text: str) -> None:
    assert x509_errors.certificate_error(der) == text


@pytest.mark.parametrize(
    ("der", "text"),
    [
        ("", "asn1: syntax error: sequence truncated"),
        ("MAA=", "asn1: syntax error: sequence truncated"),
        ("MAIwAA==", "asn1: syntax error: sequence truncated"),
        ("MIIB", "asn1: syntax error: truncated tag or length"),
        ("MIH/", "asn1: syntax error: data truncated"),
        ("MIA=", "asn1: syntax error: indefinite length found (not DER)"),
        ("MIECMAA=", "asn1: structure error: non-minimal length"),
    ],
)
def test_malformed_certificate_requests_have_the_errors_of_go(der: str, text: str) -> None:
    assert x509_errors.request_error(base64.b64decode(der)) == text


def test_a_wrong_tag_is_reported_with_all_that_go_knows_of_it() -> None:
    assert x509_errors.request_error(b"\x02\x01\x05").startswith(
        "asn1: structure error: tags don't match (16 vs {class:0 tag:2 length:1 isCompound:false}) {optional:false "
    )
