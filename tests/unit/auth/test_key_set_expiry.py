"""Tests of the time until which the key set of an issuer is cached, by the headers of its response."""

from __future__ import annotations

import pytest

from support.growth import assert_linear
from tetrapod.auth.oidc.fetching import Fetched
from tetrapod.auth.oidc.keyset import cacheable_until

NOW = 1_000.0


def expiry(**headers: str) -> float:
    return cacheable_until(Fetched(200, {name.replace("_", "-"): value for name, value in headers.items()}, b""), NOW)


def test_the_age_for_shared_caches_is_used_first() -> None:
    assert expiry(cache_control="max-age=60, s-maxage=30") == NOW + 30
    assert expiry(cache_control="max-age=60", expires="Thu, 01 Jan 1970 01:00:00 GMT") == NOW + 60
    assert expiry(expires="Thu, 01 Jan 1970 01:00:00 GMT") == 3600
    assert expiry(cache_control="no-store, max-age=60") == expiry() == NOW
    assert expiry(cache_control='public,,Max-Age = "60"') == NOW + 60


@pytest.mark.parametrize("digits", ["9" * 5000, "99999999999"])
def test_an_age_beyond_31_bits_is_capped(digits: str) -> None:
    assert expiry(cache_control=f"max-age={digits}") == NOW + (1 << 31) - 1


@pytest.mark.parametrize(
    "headers", [{"cache_control": "max-age=\u00b2"}, {"expires": "soon"}, {"expires": "Thu, 01 Jan 99999 00:00:00 GMT"}]
)
def test_malformed_headers_are_ignored(headers: dict[str, str]) -> None:
    assert expiry(**headers) == NOW


@pytest.mark.parametrize("piece", [" ", "a ", "a=", "a,", '"'])
def test_the_headers_of_an_issuer_are_parsed_in_linear_time(piece: str) -> None:
    assert_linear(lambda header: expiry(cache_control=header), lambda size: f"a{piece * size}!")
