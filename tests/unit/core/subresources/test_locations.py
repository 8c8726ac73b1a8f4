"""Tests of the endpoints that proxied requests name by host and port."""

from __future__ import annotations

import pytest

from tetrapod.core.subresources.locations import endpoint_of
from tetrapod.machinery.status import StatusError


def test_the_default_port_follows_the_scheme() -> None:
    assert [endpoint_of("10.1.2.3", "", scheme).port for scheme in ("", "http", "https")] == [80, 80, 443]


@pytest.mark.parametrize("port", ["65536", "9" * 5000, "-1", "http", "\u0663"])
def test_a_port_that_is_no_16_bit_number_is_unreachable(port: str) -> None:
    with pytest.raises(StatusError, match="unknown port") as rejected:
        endpoint_of("10.1.2.3", port, "http")
    assert rejected.value.code == 503
