"""The certificates' directories as Secrets of the cluster that hosts the four services: a Secret each, `PREFIX-core` and so on.

For a job inside that cluster, which alone may write them; standard library only. The authorities' Secret goes first: a run that
ends half way has made nothing that the next one cannot go on from. The signing key is in auth's Secret and in no other.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.certificates.services import DIRECTORIES

_SIGNING_KEY: Final = "sa.key"
_LEFT_OUT: Final = {("ca", _SIGNING_KEY), ("ca", "pki.json")}


class SecretsError(Exception):
    """The hosting cluster did not do what it was asked; says what."""


@dataclass
class Cluster:
    """The hosting cluster's API server, as a pod sees it."""

    url: str
    token: str
    context: ssl.SSLContext
    namespace: str

    @classmethod
    def of_pod(cls, directory: Path) -> Cluster:
        """Raises SecretsError outside a pod."""
        try:
            host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
            token, namespace = ((directory / name).read_text().strip() for name in ("token", "namespace"))
            context = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        except (KeyError, OSError) as error:
            raise SecretsError(f"not in a pod with a service account's token: {error}") from None
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}", token, context, namespace)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """The object, or None where there is none. Raises SecretsError."""
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"authorization": f"Bearer {self.token}", "content-type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.context) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404 and method == "GET":
                    return None
                raise SecretsError(f"{method} {path}: {error.code}: {error.read().decode(errors='replace')[:500]}") from None
        except OSError as error:
            raise SecretsError(f"{method} {path}: {error}") from None


@dataclass
class Secrets:
    """Fills directories below `out` from Secrets, and back where they have changed."""

    cluster: Cluster
    prefix: str
    out: Path
    labels: Mapping[str, str]
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def load(self) -> None:
        for name in DIRECTORIES:
            found = self.cluster.ask("GET", self._path(name))
            if found is None:
                continue
            self._known[name] = found
            for file, data in found.get("data", {}).items():
                self._write(name, file, base64.b64decode(data))
        signing_key = self.out / "auth" / _SIGNING_KEY
        if signing_key.exists():
            self._write("ca", _SIGNING_KEY, signing_key.read_bytes())

    def save(self) -> list[str]:
        """Names of the Secrets that were made or changed."""
        return [self._name(name) for name in DIRECTORIES if self._save(name)]

    def _save(self, name: str) -> bool:
        files = sorted(path for path in (self.out / name).iterdir() if (name, path.name) not in _LEFT_OUT)
        data = {path.name: base64.b64encode(path.read_bytes()).decode() for path in files}
        known = self._known.get(name)
        if known is None:
            metadata = {"name": self._name(name), "labels": dict(self.labels)}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
            self.cluster.ask("POST", self._path(), secret)
            return True
        if known.get("data") == data:
            return False
        # With its resource version: whoever else writes at the same time does not lose what he wrote.
        self.cluster.ask("PUT", self._path(name), {**known, "data": data})
        return True

    def _write(self, name: str, file: str, data: bytes) -> None:
        path = self.out / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(data)

    def _name(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def _path(self, name: str = "") -> str:
        collection = f"/api/v1/namespaces/{self.cluster.namespace}/secrets"
        return f"{collection}/{self._name(name)}" if name else collection
