"""Tests of string formats: they accept the same values as a real server, its mistakes included."""

import pytest

from tetrapod.machinery import string_formats
from tetrapod.machinery.golang.urls import BadUrl, parse

ACCEPTED = {
    "hostname": ["localhost", "h-ost", "a.b-c.com", "☃.com", "1.example"],
    "email": ["a@b", "A B <a@b.c>", '"a b"@c.d', "a@[1.2.3.4]", "a@b (who)", "g: a@b;", "=?utf-8?q?x?= <a@b>"],
    "uri": ["/a b", "a:b", "http://[::1]:80", "*", "http:///"],
    "mac": ["00:11:22:33:44:55", "0011.2233.4455", "001122334455", ":".join(["aa"] * 20)],
    "date": ["0000-02-29", "2020-02-29"],
    "date-time": ["2020-01-01T00:00:00Z", "2020-01-01t00:00:00.5+99:99", "2020-01-01T00:00:00ZTtrash"],
    "ipv6": ["::", "::ffff:1.2.3.4"],
    "ssn": ["078-05-1120", "078 05 1120"],
    "creditcard": ["4111 1111 1111 1111", "4111é1111-1111x1111"],
    "byte": ["YWJj", "YWI=", "YQ==", "+/9A" * 1000],
    "duration": ["1h30m", "about 3 days", "1 x 2 hours"],
}
REJECTED = {
    "hostname": ["host-name", "1.2.3.4", "a.c", "a.é", "a." + "b" * 64, "", "a.com."],
    "email": ["", "@b", "a@", "a@[x]", '""@c', "a..b@c", "A <a@b", "a@b, c@d", "g:;", "=?foo?q?x?= <a@b>"],
    "uri": ["", "relative", "http://a b", "http://[a]/", "http://a:b", "/%zz", "#a"],
    "mac": ["00:11:22-33:44:55", ":".join(["aa"] * 18), "00112.2334455"],
    "date": ["0000-13-01", "2021-02-29", "10000-01-01"],
    "date-time": ["2020-01-01T00:00:00|01:00", "2020-01-01 00:00:00Z", "2020-01-01T00:00:60Z"],
    "ipv6": ["fe80::1%eth0", "1.2.3.4"],
    "ssn": ["078051120"],
    "creditcard": ["2221000000000009"],
    "duration": ["9223372036854775808 days", "9" * 5000 + " days", "3 x", "1 day 9223372036854775808 x"],
    "byte": ["", "YWJ", "Y===", "====", "YQ=a", "YQ==YWJj", "YWJ\n", "YWJé", "YQ\u0661="],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in ACCEPTED.items() for text in texts])
def test_a_format_accepts(name: str, text: str) -> None:
    assert string_formats.matches(name, text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in REJECTED.items() for text in texts])
def test_a_format_rejects(name: str, text: str) -> None:
    assert not string_formats.matches(name, text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("http://[a]/", 'invalid host: ParseAddr("a"): unable to parse IP'),
        ("http://[1.2.3.4]/", "invalid IP-literal"),
        ("http://x[::1]", "invalid IP-literal"),
        ("http://a:1:2", 'invalid port ":1:2" after host'),
        ("http://[::1%20]", 'invalid URL escape "%20"'),
    ],
)
def test_malformed_hosts_of_urls_have_the_errors_of_go(text: str, complaint: str) -> None:
    with pytest.raises(BadUrl) as caught:
        parse(text)
    assert str(caught.value) == complaint


def test_a_zone_of_an_address_is_shown_escaped() -> None:
    assert str(parse("http://[::1%25en%200]:80/")) == "http://[::1%25en%200]:80/"
    assert str(parse("mongodb://a:1,b:2")) == "mongodb://a:1,b:2"
