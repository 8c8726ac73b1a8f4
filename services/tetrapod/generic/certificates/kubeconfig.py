"""The creation of kubeconfig files with inline certificates, for `kubectl --kubeconfig`.

Kubeconfig files are read by `tetrapod.generic.webhook.kubeconfig`.
"""

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
    """Return a new kubeconfig object with one context.

    Args:
        server: the URL of the API server.
        ca: the CA of its serving certificate, as PEM.
        certificate: the client certificate as PEM; empty for none.
        key: the key of the client certificate, as PEM.
        token: a bearer token; "" for none.
        cluster: the name of the cluster entry.
        user: the name of the user entry, which is not the user name that the server sees.
    """
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
    """Write a kubeconfig as JSON (which is valid YAML) with mode 0600, atomically.

    Missing directories are created. A file with the same content is not written again.

    Args:
        path: the file.
        config: the kubeconfig.

    Raises:
        OSError: the file cannot be read or written.
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
