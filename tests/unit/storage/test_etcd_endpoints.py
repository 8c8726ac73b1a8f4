"""Endpoints of --etcd-servers."""

from __future__ import annotations

import pytest

from tetrapod.generic.storage.etcd.endpoints import parse_endpoint


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("10.0.0.44", ("http", "10.0.0.44", 2379, "")),
        ("https://etcd:4001", ("https", "etcd", 4001, "")),
        ("unix:///run/etcd.sock", ("unix", "etcd.sock", 0, "/run/etcd.sock")),
        ("unixs://run/etcd.sock", ("unixs", "etcd.sock", 0, "run/etcd.sock")),
        ("unix://@etcd", ("unix", "@etcd", 0, "\0etcd")),
    ],
)
def test_an_endpoint_is_a_tcp_or_unix_address(url: str, endpoint: tuple[object, ...]) -> None:
    assert parse_endpoint(url) == endpoint


@pytest.mark.parametrize("url", ["", "unix:", "unix://", "ftp://etcd", "http://"])
def test_an_invalid_endpoint_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="not an etcd endpoint"):
        parse_endpoint(url)
