"""A webhook's kubeconfig file: where it is, whom to believe, and who we are.

Paths are relative to the file. Follows k8s.io/client-go/tools/clientcmd (loader.go, client_config.go, validation.go) as
LoadKubeconfig of k8s.io/apiserver/pkg/util/webhook uses it; plugins for credentials (exec, auth-provider) are not run.
"""

from __future__ import annotations

import atexit
import base64
import binascii
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tetrapod.generic.proxy.pool import Endpoint, parse_url
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.request import HeaderList
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.serializer import yaml
from tetrapod.machinery.serializer.errors import DecodeError


@dataclass(frozen=True, slots=True)
class Target:
    """`path` is the request target, `host` the Host header; `token_file` is read for each call, since it may be renewed."""

    url: str
    endpoint: Endpoint
    path: str
    host: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    token_file: str = ""

    def credentials(self) -> HeaderList:
        if not self.token_file:
            return list(self.headers)
        token = Path(self.token_file).read_text().strip()
        return [*self.headers, (b"authorization", f"Bearer {token}".encode())]


def read_kubeconfig(path: str) -> Target:
    """
    Raises:
        ValueError: it cannot be read, or lacks what is needed to call a server.
    """
    file = Path(path)
    try:
        config = yaml.decode(file.read_bytes()).obj
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise ValueError(f"{'stat' if missing else 'open'} {path}: {(error.strerror or '').lower()}") from None
    except DecodeError as error:
        raise ValueError(f"error loading config file {go_quote(path)}: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"error loading config file {go_quote(path)}: it holds no object")
    return _Kubeconfig(config, file.parent).target()


class _Kubeconfig:
    def __init__(self, config: dict[str, Any], directory: Path) -> None:
        self._config, self._directory = config, directory

    def target(self) -> Target:
        current = self._config.get("current-context") or ""
        context = self._named("contexts", current, "context") if current else {}
        if not current:
            raise ValueError(
                "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
            )
        cluster = self._named("clusters", context.get("cluster") or "", "cluster")
        user = self._named("users", context["user"], "user") if context.get("user") else {}
        server = cluster.get("server") or ""
        if not server:
            raise ValueError(f"invalid configuration: no server found for cluster {go_quote(context.get('cluster') or '')}")
        for kind in ("exec", "auth-provider"):
            if user.get(kind):
                raise ValueError(f"users of the kind {kind} cannot be used for a webhook: give a certificate, a token or a password")
        endpoint, path, host = parse_url(server if "://" in server else f"http://{server}", self._tls(cluster, user))
        return Target(server, endpoint, path, host, *self._credentials(user))

    def _named(self, kind: str, name: str, key: str) -> dict[str, Any]:
        for entry in self._config.get(kind) or ():
            if isinstance(entry, dict) and entry.get("name") == name:
                return entry.get(key) or {}
        if key == "context":
            raise ValueError(f"context was not found for specified context: {name}")
        return {}

    def _tls(self, cluster: dict[str, Any], user: dict[str, Any]) -> ClientTLS:
        authorities = self._data(cluster, "certificate-authority").decode("latin-1")
        return ClientTLS(
            ca_data=authorities,
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            certificate=self._file(user, "client-certificate"),
            key=self._file(user, "client-key"),
            server_name=cluster.get("tls-server-name") or "",
        )

    def _data(self, entry: dict[str, Any], name: str) -> bytes:
        """Given in the file, or by the name of another."""
        if given := entry.get(f"{name}-data"):
            try:
                return base64.b64decode(str(given))
            except binascii.Error as error:
                raise ValueError(f"invalid configuration: {name}-data: {error}") from None
        if not entry.get(name):
            return b""
        file = self._directory / str(entry[name])
        try:
            return file.read_bytes()
        except OSError as error:
            reason = (error.strerror or "").lower()
            raise ValueError(f"invalid configuration: unable to read {name} {file}: open {file}: {reason}") from None

    def _file(self, entry: dict[str, Any], name: str) -> str:
        """A file with it: ssl loads certificates from files only."""
        data = self._data(entry, name)
        if not data:
            return ""
        if not entry.get(f"{name}-data"):
            return str(self._directory / entry[name])
        descriptor, path = tempfile.mkstemp(prefix="tetrapod-", suffix=".pem")
        atexit.register(Path(path).unlink, missing_ok=True)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path

    def _credentials(self, user: dict[str, Any]) -> tuple[tuple[tuple[bytes, bytes], ...], str]:
        """Headers, and a file with a token."""
        if token_file := user.get("tokenFile"):
            return (), str(self._directory / token_file)
        if token := user.get("token"):
            return ((b"authorization", f"Bearer {token}".encode()),), ""
        if user.get("username") or user.get("password"):
            pair = f"{user.get('username') or ''}:{user.get('password') or ''}".encode()
            return ((b"authorization", b"Basic " + base64.b64encode(pair)),), ""
        return (), ""
