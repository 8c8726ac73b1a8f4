"""Which webhooks are called over one shared connection."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.webhook.client_config import client_config


@pytest.mark.parametrize(
    ("config", "shares"),
    [
        ({"url": "https://localhost/path"}, True),
        ({"url": "https://LOCALHOST:8443/"}, True),
        ({"url": "https://127.8.0.1:8443"}, True),
        ({"url": "https://[::1]:8443/"}, True),
        ({"url": "https://192.0.2.1"}, False),
        ({"url": "https://hooks.example.com"}, False),
        ({"service": {"namespace": "n", "name": "localhost"}}, False),
    ],
)
def test_only_webhooks_with_a_local_url_share_a_connection(config: dict[str, Any], shares: bool) -> None:
    assert client_config(config).shares_connection is shares
