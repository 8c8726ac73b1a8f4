"""The kubeconfig file of a webhook: its address, its CAs, and the credentials for it.

Paths in it are relative to the file. Users with `exec` need a caller that runs the plugin, which webhooks do not.
Upstream: k8s.io/client-go/tools/clientcmd/{loader,client_config,validation}.go; k8s.io/apiserver/pkg/util/webhook,
LoadKubeconfig
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tetrapod.generic.certificates.temporary import temporary_file
from tetrapod.generic.configuration.files import file_error_text
from tetrapod.generic.configuration.loading import check, not_registered
from tetrapod.generic.configuration.schemas import base64_bytes, boolean, kind, list_of, raw, string, struct
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.proxy.endpoint import Endpoint, parse_url
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.webhook.client_config import NO_CREDENTIALS, Credentials, Plugin
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import json, yaml
from tetrapod.machinery.serializer.type_meta import recognize

_IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")
_NO_SERVER: Final = "cluster has no server defined"
_NOTHING: Final = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)


@dataclass(frozen=True, slots=True)
class Target:
    """The server of a kubeconfig.

    Attributes:
        url: the URL as it is in the file.
        endpoint: host, port and TLS configuration.
        path: the path with the query.
        host: the Host header.
        credentials: the credentials.
    """

    url: str
    endpoint: Endpoint
    path: str
    host: str
    credentials: Credentials = NO_CREDENTIALS

    def auth_headers(self) -> HeaderList:
        """Return a new list of the headers with credentials. Raises OSError if the token cannot be read."""
        return self.credentials.auth_headers()


def read_kubeconfig(path: str, context: str = "", plugin: Plugin | None = None) -> Target:
    """Read a kubeconfig and return the server of a context.

    Args:
        path: the file.
        context: the name of the context; "" for the current one.
        plugin: runs credential plugins; None to reject users that need one.

    Raises:
        ValueError: the file cannot be read or is incomplete.
        OSError: inline certificates cannot be written to a temporary file, or a plugin failed.
    """
    return Kubeconfig(read_config(path), Path(path).parent, context).target(plugin)


def read_config(path: str) -> Object:
    """Return the Config in a kubeconfig file, without fields that are not used.

    Raises:
        ValueError: the file cannot be read or decoded; the text is client-go's.
    """
    if not path:
        raise ValueError(_NOTHING)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(
            file_error_text("stat" if isinstance(error, FileNotFoundError) else "open", path, error)
        ) from None
    try:
        config, api_version, named = recognize(
            (json.decode(data) if data.lstrip().startswith(b"{") else yaml.decode(data)).obj
        )
        if (api_version or "v1", named or "Config") != ("v1", "Config"):
            raise not_registered(named, api_version)
        check(config, _shape(), None, [], strict=False)
    except ValueError as error:
        raise ValueError(f"error loading config file {go_quote(path)}: {error}") from None
    return config


class Kubeconfig:
    """The cluster and the user of a context, in a Config whose paths are relative to a directory."""

    def __init__(self, config: Object, directory: Path, context_name: str) -> None:
        self._directory = directory
        current = context_name or config.get("current-context") or ""
        context = _named(config, "contexts", current, "context")
        self._problems = (
            [f"context was not found for specified context: {current}"] if current and context is None else []
        )
        context = context or {}
        self._cluster_name, self._user_name = context.get("cluster") or "", context.get("user") or ""
        self._cluster: Object = _named(config, "clusters", self._cluster_name, "cluster") or {}
        self._user: Object = _named(config, "users", self._user_name, "user") or {}

    def target(self, plugin: Plugin | None) -> Target:
        """Return the server of the context.

        Raises:
            ValueError: the file is incomplete or contradicts itself, with client-go's text; it needs a proxy or
                impersonation.
        """
        problems = [*self._problems, *self._user_problems(), *self._cluster_problems()]
        if problems == [_NO_SERVER]:
            raise ValueError(_NOTHING)
        if problems:
            raise ValueError(f"invalid configuration: {aggregate_errors(problems)}")
        if self._cluster.get("proxy-url"):
            raise ValueError(
                f"cluster {go_quote(self._cluster_name)} has a proxy-url, which is not supported: "
                "the server must be reached directly"
            )
        if plugin is not None and self._user.get("exec"):
            _reject_impersonation(self._user)
            credentials = plugin(self._user["exec"], self._cluster, self._directory)
        else:
            credentials = credentials_of(self._user, self._directory)
        server = self._cluster["server"]
        try:
            endpoint, path, host = parse_url(server if "://" in server else f"http://{server}", self._tls(credentials))
        except BackendError:
            raise ValueError(f"host must be a URL or a host:port pair: {go_quote(server)}") from None
        return Target(server, endpoint, path, host, credentials)

    def _user_problems(self) -> list[str]:
        user, name, problems = self._user, self._user_name, []
        if user.get("client-certificate") or user.get("client-certificate-data"):
            if user.get("client-certificate") and user.get("client-certificate-data"):
                problems.append(
                    f"client-cert-data and client-cert are both specified for {name}. client-cert-data will override."
                )
            if user.get("client-key") and user.get("client-key-data"):
                problems.append(
                    f"client-key-data and client-key are both specified for {name}; client-key-data will override"
                )
            if not user.get("client-key") and not user.get("client-key-data"):
                problems.append(
                    f"client-key-data or client-key must be specified for {name} to use the clientCert authentication "
                    "method."
                )
            problems += self._unreadable(user, name, "client-certificate", "client-cert")
            problems += self._unreadable(user, name, "client-key", "client-key")
        if user.get("token") and (user.get("username") or user.get("password")):
            methods = "[token basicAuth]"
            problems.append(
                f"more than one authentication method found for {name}; found {methods}, only one is allowed"
            )
        return problems

    def _cluster_problems(self) -> list[str]:
        cluster, name, problems = self._cluster, self._cluster_name, []
        if not cluster:
            return [_NO_SERVER]
        if not cluster.get("server"):
            problems.append(
                f"no server found for cluster {go_quote(name)}" if name else "default cluster has no server defined"
            )
        if cluster.get("certificate-authority") and cluster.get("certificate-authority-data"):
            both = "certificate-authority-data and certificate-authority are both specified"
            problems.append(f"{both} for {name}. certificate-authority-data will override.")
        return problems + self._unreadable(cluster, name, "certificate-authority", "certificate-authority")

    def _unreadable(self, entry: Object, name: str, key: str, field_text: str) -> list[str]:
        """Return the error for the file that `entry` names under `key`, if it cannot be read; otherwise [].

        Args:
            entry: the content of a cluster or user.
            name: the name of that cluster or user, for the error text.
            key: the field with the path, such as "client-key".
            field_text: the name of that field in the error text.
        """
        if not entry.get(key):
            return []
        file = str(self._directory / entry[key])
        try:
            Path(file).open("rb").close()
        except OSError as error:
            return [f"unable to read {field_text} {file} for {name} due to {file_error_text('open', file, error)}"]
        return []

    def _tls(self, credentials: Credentials) -> ClientTLS:
        return ClientTLS(
            ca_data=_data(self._cluster, "certificate-authority", self._directory).decode("latin-1"),
            insecure=bool(self._cluster.get("insecure-skip-tls-verify")),
            certificate=credentials.certificate,
            key=credentials.key,
            server_name=self._cluster.get("tls-server-name") or "",
        )


def credentials_of(user: Object, directory: Path) -> Credentials:
    """Convert the `user` of an entry of `users`, whose paths are relative to `directory`.

    Inline data must be valid base64, as `read_config` ensures.

    Raises:
        ValueError: the kind of user is not supported.
        OSError: inline data cannot be written to a temporary file.
    """
    for plugin in ("exec", "auth-provider"):
        if user.get(plugin):
            raise ValueError(
                f"users of the kind {plugin} cannot be used for a webhook: give a certificate, a token or a password"
            )
    _reject_impersonation(user)
    certificate, key = (_file(user, name, directory) for name in ("client-certificate", "client-key"))
    if token_file := user.get("tokenFile"):
        return Credentials(certificate, key, token_file=str(directory / token_file))
    if token := user.get("token"):
        return Credentials(certificate, key, ((b"authorization", f"Bearer {token}".encode()),))
    if user.get("username") or user.get("password"):
        pair = f"{user.get('username') or ''}:{user.get('password') or ''}".encode()
        return Credentials(certificate, key, ((b"authorization", b"Basic " + base64.b64encode(pair)),))
    return Credentials(certificate, key)


def _reject_impersonation(user: Object) -> None:
    """Raise ValueError if a user of a kubeconfig impersonates another one.

    Requests without the impersonation would have the rights of the user itself.
    """
    for name in _IMPERSONATION:
        if user.get(name):
            raise ValueError(f"users with the field {name} cannot be used: impersonation is not supported")


def _data(entry: Object, name: str, directory: Path) -> bytes:
    """Return the data that `entry` contains (`NAME-data`, decoded) or whose file it names; b"" if neither.

    Args:
        entry: the content of a cluster or user.
        name: the field with the path, such as "client-key".
        directory: the directory to which the path is relative.

    Raises:
        ValueError: the data is not base64.
        OSError: the file cannot be read.
    """
    if inline := entry.get(f"{name}-data"):
        decoded: bytes = base64.b64decode(inline)
        return decoded
    return (directory / entry[name]).read_bytes() if entry.get(name) else b""


def _file(user: Object, name: str, directory: Path) -> str:
    """Return the path of a file with the data of a field of `user`; "" if the user has no such data.

    Inline data (the field `NAME-data`, in base64) is written to a temporary file.

    Args:
        user: the content of a user of the kubeconfig.
        name: the field with the path, such as `client-certificate`.
        directory: the directory to which the path is relative.

    Raises:
        ValueError: the inline data is not base64.
        OSError: the temporary file cannot be written.
    """
    if not user.get(f"{name}-data"):
        return str(directory / user[name]) if user.get(name) else ""
    return temporary_file(_data(user, name, directory))


def _named(config: Object, kind: str, name: str, key: str) -> Object | None:
    """Return the content (under `key`) of the first entry named `name` in the list `kind`; None if no entry matches."""
    return next((entry.get(key) or {} for entry in config.get(kind) or () if (entry.get("name") or "") == name), None)


def _shape() -> SchemaNode:
    """Return the schema of the fields that are used (k8s.io/client-go/tools/clientcmd/api/v1)."""
    cluster = {name: string() for name in ("server", "tls-server-name", "certificate-authority", "proxy-url")}
    cluster |= {
        "insecure-skip-tls-verify": boolean(),
        "certificate-authority-data": base64_bytes(),
        "extensions": raw(),
    }
    user = {
        name: string() for name in ("client-certificate", "client-key", "token", "tokenFile", "username", "password")
    }
    user |= {
        "client-certificate-data": base64_bytes(),
        "client-key-data": base64_bytes(),
        "exec": raw(),
        "auth-provider": raw(),
        **{name: raw() for name in _IMPERSONATION},
    }
    return kind(
        "Config",
        clusters=list_of(struct("v1.NamedCluster", name=string(), cluster=struct("v1.Cluster", **cluster))),
        users=list_of(struct("v1.NamedAuthInfo", name=string(), user=struct("v1.AuthInfo", **user))),
        contexts=list_of(
            struct("v1.NamedContext", name=string(), context=struct("v1.Context", cluster=string(), user=string()))
        ),
        **{"current-context": string()},
    )
