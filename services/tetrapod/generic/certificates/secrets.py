"""Stores the certificate directories of the services as Secrets of the hosting cluster, `PREFIX-core` and so on.

It is for a job in the cluster that hosts the four services, which alone may write these Secrets. It uses the standard
library only. The Secret of the CAs is written first, so that the next run can continue after an interrupted one. The
signing key is in the Secret of auth only.
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
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.certificates.pki import PRIVATE, write_file
from tetrapod.generic.certificates.services import DIRECTORIES
from tetrapod.machinery.golang.ip_addresses import join_host_port

_SIGNING_KEY: Final = "sa.key"
_LEFT_OUT: Final = {("ca", _SIGNING_KEY), ("ca", "pki.json")}


class SecretsError(Exception):
    """The error of a failed request to the hosting cluster, or of a process without a pod's service account.

    Outside a pod, the address of the cluster and the credentials for it are missing.
    """


@dataclass
class Cluster:
    """The API server of the hosting cluster, and the credentials of this pod.

    Attributes:
        url: the base URL.
        token: the token of the pod's service account.
        context: the TLS context that trusts the cluster's CA.
        namespace: the namespace of the pod.
    """

    url: str
    token: str
    context: ssl.SSLContext
    namespace: str

    @classmethod
    def of_pod(cls, directory: Path) -> Cluster:
        """Return the cluster of this pod.

        Args:
            directory: the directory of the service account's token, namespace and CA.

        Raises:
            SecretsError: the process does not run in a pod with a service account.
        """
        try:
            host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
            token, namespace = ((directory / name).read_text("utf-8").strip() for name in ("token", "namespace"))
            context = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        except (KeyError, OSError) as error:
            raise SecretsError(f"not in a pod with a service account's token: {error}") from None
        return cls(f"https://{join_host_port(host, port)}", token, context, namespace)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Send a request and return the object in the response.

        Return None only for a GET of an object that does not exist.

        Args:
            method: the HTTP method.
            path: the path.
            body: the object to send; None for none.

        Raises:
            SecretsError: the request failed or was rejected, or the response is not JSON.
        """
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"authorization": f"Bearer {self.token}", "content-type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.context) as answer:
                obj: dict[str, Any] = json.load(answer)
                return obj
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404 and method == "GET":
                    return None
                raise SecretsError(
                    f"{method} {path}: {error.code}: {error.read().decode(errors='replace')[:500]}"
                ) from None
        except (OSError, HTTPException, ValueError) as error:
            raise SecretsError(f"{method} {path}: {error}") from None


@dataclass
class Secrets:
    """The Secrets with the certificates: `load` copies them to files, `save` copies changed files back.

    There is one Secret for each directory: of the CAs, the administrator, monitoring, each service, and etcd.

    Args:
        cluster: the hosting cluster.
        prefix: the beginning of the Secrets' names, which are PREFIX-DIRECTORY.
        out: the directory that contains these directories.
        labels: the labels of new Secrets.
    """

    cluster: Cluster
    prefix: str
    out: Path
    labels: Mapping[str, str]
    _loaded: dict[str, dict[str, Any]] = field(default_factory=dict)

    def load(self) -> None:
        """Write the files of all existing Secrets to the directories below `out`. Call it before `save`.

        The signing key is also copied from the directory of auth to that of the CAs, where renewal needs it.

        Raises:
            SecretsError: a request failed.
        """
        for name in DIRECTORIES:
            secret = self.cluster.ask("GET", self._path(name))
            if secret is None:
                continue
            self._loaded[name] = secret
            for file, data in secret.get("data", {}).items():
                self._write(name, file, base64.b64decode(data))
        signing_key = self.out / "auth" / _SIGNING_KEY
        if signing_key.exists():
            self._write("ca", _SIGNING_KEY, signing_key.read_bytes())

    def save(self) -> list[str]:
        """Create or update the Secrets whose files have changed since `load`, and return their names.

        Raises:
            SecretsError: a request failed, or another writer has changed a Secret since `load`.
        """
        return [self._name(name) for name in DIRECTORIES if self._save(name)]

    def _save(self, name: str) -> bool:
        files = sorted(path for path in (self.out / name).iterdir() if (name, path.name) not in _LEFT_OUT)
        data = {path.name: base64.b64encode(path.read_bytes()).decode() for path in files}
        existing = self._loaded.get(name)
        if existing is None:
            metadata = {"name": self._name(name), "labels": dict(self.labels)}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
            self.cluster.ask("POST", self._path(), secret)
            return True
        if existing.get("data") == data:
            return False
        # The update includes the resource version, so a concurrent writer's changes are not lost.
        self.cluster.ask("PUT", self._path(name), {**existing, "data": data})
        return True

    def _write(self, name: str, file: str, data: bytes) -> None:
        path = self.out / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, data, PRIVATE)

    def _name(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def _path(self, name: str = "") -> str:
        collection = f"/api/v1/namespaces/{self.cluster.namespace}/secrets"
        return f"{collection}/{self._name(name)}" if name else collection
