"""Kubeconfig files with inline certificates, for `kubectl --kubeconfig`."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path
from typing import Any

import orjson


def kubeconfig(
    server: str,
    *,
    ca: bytes,
    certificate: bytes = b"",
    key: bytes = b"",
    token: str = "",
    cluster: str = "tetrapod",
    user: str = "admin",
) -> dict[str, Any]:
    """Return a kubeconfig object with one context, which authenticates with a certificate or a token."""
    credentials: dict[str, Any] = {"token": token} if token else {}
    if certificate:
        credentials["client-certificate-data"] = base64.b64encode(certificate).decode()
        credentials["client-key-data"] = base64.b64encode(key).decode()
    context = f"{user}@{cluster}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()},
            }
        ],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
        "preferences": {},
    }


def write_kubeconfig(path: str | Path, config: dict[str, Any]) -> None:
    """Write a kubeconfig as JSON (which is valid YAML), readable by the owner only.

    An unchanged file is not rewritten.
    """
    path = Path(path)
    data = orjson.dumps(config, option=orjson.OPT_INDENT_2) + b"\n"
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.replace(temporary, path)
