"""Credential plugins of kubeconfigs (`exec`): programs that print the credentials of the user.

A token is kept until it expires or the server rejects it. A client certificate is kept until the command ends.
Upstream: k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from tetrapod.generic.certificates.temporary import temporary_file
from tetrapod.generic.webhook.client_config import Credentials
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

_GROUP: Final = "client.authentication.k8s.io"
_VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES: Final = ("Never", "IfAvailable", "Always")
_CLUSTER_FIELDS: Final = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
_HELP: Final = (
    "\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.\n\n"
    "To learn more about this feature, consult the documentation available at:\n"
    "      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
)


class PluginError(OSError):
    """The plugin returned no credentials. The text is client-go's."""


class ExecPlugin:
    """A credential plugin.

    Args:
        config: the field `exec` of a user, with `apiVersion` and `command`.
        cluster: the cluster of the context, for plugins that want to know it.
        directory: the directory of the kubeconfig, to which a command with a slash is relative.
    """

    def __init__(self, config: Object, cluster: Object, directory: Path) -> None:
        self._config = config
        self._cluster = cluster
        self._directory = directory
        command = str(config["command"])
        self._command = str(directory / command) if os.sep in command else command
        self._lock = threading.Lock()
        self._token: str | None = None
        self._expires: datetime | None = None

    def credentials(self) -> Credentials:
        """Run the plugin, and return its credentials.

        Raises:
            PluginError: it returned none.
        """
        status = self._run()
        pair = (status.get(name) or "" for name in ("clientCertificateData", "clientKeyData"))
        certificate, key = (temporary_file(pem.encode()) if pem else "" for pem in pair)
        self._keep(status)
        return Credentials(certificate, key, tokens=self if status.get("token") else None)

    def token(self) -> str:
        """Return the token. The plugin is run if the token has expired, or was rejected.

        Raises:
            PluginError: the plugin returned no credentials.
        """
        with self._lock:
            if self._token is None or (self._expires is not None and datetime.now(UTC) >= self._expires):
                self._keep(self._run())
            return self._token or ""

    def reject(self) -> None:
        """Forget the token, because the server has rejected it."""
        self._token = None

    def _keep(self, status: Object) -> None:
        self._token = status.get("token") or ""
        expires = status.get("expirationTimestamp")
        self._expires = datetime.fromisoformat(expires) if expires else None

    def _run(self) -> Object:
        """Return the status of the ExecCredential that the plugin prints."""
        interactive = self._is_interactive()
        version = self._config["apiVersion"]
        spec: Object = {"interactive": interactive}
        if self._config.get("provideClusterInfo"):
            spec["cluster"] = _cluster(self._cluster, self._directory)
        info = {"kind": "ExecCredential", "apiVersion": version, "spec": spec}
        variables = {str(each["name"]): str(each.get("value", "")) for each in self._config.get("env") or ()}
        environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()}
        arguments = [self._command, *map(str, self._config.get("args") or ())]
        stdin = None if interactive else subprocess.DEVNULL
        try:
            ended = subprocess.run(arguments, env=environment, stdin=stdin, stdout=subprocess.PIPE, check=False)
        except FileNotFoundError:
            hint = f"\n\n{self._config['installHint']}" if self._config.get("installHint") else ""
            raise PluginError(f"exec: executable {self._command} not found{_HELP}{hint}") from None
        except OSError as error:
            raise PluginError(f"exec: {error}") from None
        if ended.returncode:
            raise PluginError(f"exec: executable {self._command} failed with exit code {ended.returncode}")
        return _status(ended.stdout, version)

    def _is_interactive(self) -> bool:
        mode = self._config.get("interactiveMode") or "IfAvailable"
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise PluginError("exec plugin cannot support interactive mode: standard input is not a terminal")
        return bool(mode != "Never" and terminal)


def exec_credentials(config: Object, cluster: Object, directory: Path) -> Credentials:
    """Return the credentials of a plugin, as `read_kubeconfig` wants them.

    Raises:
        ValueError: the configuration is invalid.
        PluginError: the plugin returned no credentials.
    """
    version, mode = config.get("apiVersion") or "", config.get("interactiveMode") or ""
    if not config.get("command"):
        raise ValueError("invalid configuration: command must be specified to use exec authentication plugin")
    if version not in _VERSIONS:
        raise ValueError(f"exec plugin: invalid apiVersion {go_quote(version)}")
    if mode not in _MODES and (mode or version == _VERSIONS[0]):
        text = f"unknown interactiveMode: {go_quote(mode)}" if mode else "interactiveMode must be specified"
        raise ValueError(f"invalid configuration: {text} to use exec authentication plugin")
    return ExecPlugin(config, cluster, directory).credentials()


def _cluster(cluster: Object, directory: Path) -> Object:
    """Return what a plugin may know about the cluster."""
    shown = {name: cluster[name] for name in _CLUSTER_FIELDS if cluster.get(name)}
    if data := cluster.get("certificate-authority-data"):
        shown["certificate-authority-data"] = data
    elif file := cluster.get("certificate-authority"):
        shown["certificate-authority-data"] = base64.b64encode((directory / file).read_bytes()).decode()
    extensions = cluster.get("extensions") or ()
    config = next((each.get("extension") for each in extensions if each.get("name") == f"{_GROUP}/exec"), None)
    return {**shown, "config": config}


def _status(output: bytes, version: str) -> Object:
    try:
        answer: Any = orjson.loads(output)
    except ValueError as error:
        raise PluginError(f"decoding stdout: {error}") from None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise PluginError("decoding stdout: the object is not an ExecCredential")
    if answer.get("apiVersion") != version:
        returned = answer.get("apiVersion")
        raise PluginError(f"exec plugin is configured to use API version {version}, plugin returned version {returned}")
    status: Object | None = answer.get("status")
    if not status:
        raise PluginError("exec plugin didn't return a status field")
    pair = [bool(status.get(name)) for name in ("clientCertificateData", "clientKeyData")]
    if not (status.get("token") or any(pair)):
        raise PluginError("exec plugin didn't return a token or cert/key pair")
    if any(pair) and not all(pair):
        raise PluginError("exec plugin returned only certificate or key, not both")
    try:
        datetime.fromisoformat(status.get("expirationTimestamp") or "2000-01-01T00:00:00Z")
    except ValueError as error:
        raise PluginError(f"decoding stdout: {error}") from None
    return status
