"""Kubeconfig files that point to a webhook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from support.webhook import WebhookServer


def write_kubeconfig(path: Path, server: WebhookServer, endpoint: str, **user: Any) -> Path:
    cluster = {"server": server.url + endpoint, "certificate-authority-data": server.ca_bundle}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return path
