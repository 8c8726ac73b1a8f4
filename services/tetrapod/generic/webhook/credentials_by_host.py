"""`CredentialsByHost`: the credentials for admission webhooks, by host.

They come from `users` of the kubeconfig that the plugin's configuration names. Impersonation is not supported.
Upstream: k8s.io/apiserver/pkg/util/webhook/authentication.go, defaultAuthenticationInfoResolver
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tetrapod.generic.webhook.client_config import ClientConfig, Credentials
from tetrapod.generic.webhook.kubeconfig import credentials_of, read_config
from tetrapod.machinery.gvk import Object

_HTTPS = ":443"


class CredentialsByHost:
    """The credentials for admission webhooks in one kubeconfig, in which the names of users are host patterns."""

    def __init__(self, path: str) -> None:
        """Read the kubeconfig at `path`.

        Raises:
            ValueError: the file cannot be read, or a user's kind is not supported.
            OSError: inline certificates cannot be written to a temporary file.
        """
        config, directory = read_config(path), Path(path).parent
        self._users = {
            user.get("name") or "": credentials_of(user.get("user") or {}, directory)
            for user in config.get("users") or ()
        }
        self._default = _current_user(config)

    def credentials_for(self, config: ClientConfig) -> Credentials | None:
        """Return the credentials of the user whose name matches the webhook's host and port.

        The most specific name wins: `a.example.com:8443`, then `*.example.com:8443`, `*.com:8443` and `*`. For port
        443, names without a port match too, after those with it. If no name matches, they are those of the user of the
        current context.

        Returns:
            None if no name matches and the context names no user.
        """
        return next((self._users[name] for name in self._names(config.host_port) if name in self._users), None)

    def _names(self, host_port: str) -> Iterator[str]:
        yield from _wider(host_port)
        if host_port.endswith(_HTTPS):
            yield from _wider(host_port.removesuffix(_HTTPS))
        yield "*"
        if self._default:
            yield self._default


def _wider(name: str) -> Iterator[str]:
    """Yield a name and then its wildcards: `a.b.c`, `*.b.c`, `*.c`."""
    yield name
    steps = name.split(".")
    for i in range(1, len(steps)):
        yield f"*.{'.'.join(steps[i:])}"


def _current_user(config: Object) -> str:
    current = config.get("current-context") or ""
    contexts = (
        context_entry.get("context") or {}
        for context_entry in config.get("contexts") or ()
        if current and (context_entry.get("name") or "") == current
    )
    return next((context.get("user") or "" for context in contexts), "")
