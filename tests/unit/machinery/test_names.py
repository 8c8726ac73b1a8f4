"""Tests of names, keys and addresses: invalid ones are rejected in upstream's wording."""

from __future__ import annotations

import pytest

from tetrapod.machinery import addresses, names

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an "
    r"alphanumeric character (e.g. 'example.com', "
    r"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def test_subdomains_are_validated() -> None:
    assert names.is_dns1123_subdomain("0.a-b.c9") == []
    assert names.is_dns1123_subdomain("Upper") == [SUBDOMAIN]
    assert names.is_dns1123_subdomain("a" * 254) == ["must be no more than 253 characters"]
    assert names.is_dns1123_subdomain("trailing\n") == [SUBDOMAIN]


def test_a_subdomain_is_no_label_because_of_its_dots() -> None:
    assert names.is_dns1123_label("web.dot") == ["must not contain dots"]
    assert names.is_dns1123_label("a" * 64) == ["must be no more than 63 characters"]


@pytest.mark.parametrize(
    ("key", "errors"),
    [
        ("example.com/MyName", []),
        ("A_b.c-9", []),
        ("", ["name part must be non-empty", f"name part {KEY}"]),
        ("/x", ["prefix part must be non-empty"]),
        ("UPPER.example.com/x", [f"prefix part {SUBDOMAIN}"]),
        (
            "a/b/c",
            [f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("é", [f"name part {KEY}"]),
    ],
)
def test_qualified_names_are_validated(key: str, errors: list[str]) -> None:
    assert names.is_qualified_name(key) == errors


def test_label_values_count_bytes() -> None:
    assert names.is_valid_label_value("a" * 64) == ["must be no more than 63 bytes"]
    assert names.is_valid_label_value("") == []


def test_keys_of_config_maps_are_validated() -> None:
    assert names.is_config_map_key("..") == ["must not be '..'"]
    assert names.is_config_map_key("..data") == ["must not start with '..'"]
    assert len(names.is_config_map_key("a/b")) == 1


def test_port_names_and_numbers() -> None:
    assert names.is_valid_port_name("http") == []
    assert names.is_valid_port_name("-80") == [
        "must contain at least one letter (a-z)",
        "must not begin or end with a hyphen",
    ]
    assert names.is_valid_port_number(0) == ["must be between 1 and 65535, inclusive"]


def test_names_are_valid_path_segments() -> None:
    assert names.is_path_segment_name("..") == ["may not be '..'"]
    assert names.is_path_segment_name("a/b%c") == ["may not contain '/'", "may not contain '%'"]


def test_a_generated_name_may_end_in_a_dash() -> None:
    assert names.name_is_dns_subdomain("web-", True) == []
    assert names.name_is_dns_subdomain("web-", False) == [SUBDOMAIN]
    assert names.name_is_dns_subdomain("-", True) == [SUBDOMAIN]


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("192.0.2.77", []),
        ("192.0.2.077", ["must not have leading 0s"]),
        ("2001:db8:0:0::77", ['must be in canonical form ("2001:db8::77")']),
        ("::ffff:1.2.3.4", ["must not be an IPv4-mapped IPv6 address"]),
        ("fe80::1%eth0", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
    ],
)
def test_ip_addresses_are_validated(value: str, errors: list[str]) -> None:
    assert addresses.is_valid_ip(value) == errors


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("10.0.0.0/24", []),
        ("10.0.0.1/24", ["must not have bits set beyond the prefix length"]),
        ("10.0.0.0/024", ["must not have leading 0s in IP or prefix length"]),
        ("10.0.0.0", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
        ("10.0.0.0/33", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
    ],
)
def test_cidrs_are_validated(value: str, errors: list[str]) -> None:
    assert addresses.is_valid_cidr(value) == errors


def test_names_stored_before_stay_valid() -> None:
    assert addresses.is_valid_ip_for_legacy_field("010.0.0.1", ["010.0.0.1"]) == []
    assert addresses.is_valid_ip_for_legacy_field("010.0.0.1") == ["must not have leading 0s"]
