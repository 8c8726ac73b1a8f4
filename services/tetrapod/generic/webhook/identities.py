"""`Identities`: as whom webhooks of admission are called, by their hosts: `users` of the kubeconfig that the plugin is configured with.

Follows defaultAuthenticationInfoResolver of k8s.io/apiserver/pkg/util/webhook/authentication.go; impersonation is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tetrapod.generic.webhook.config import ClientConfig
from tetrapod.generic.webhook.identity import Identity
from tetrapod.generic.webhook.kubeconfig import identity_of, read_config
from tetrapod.machinery.gvk import Object

_HTTPS = ":443"


class Identities:
    def __init__(self, path: str) -> None:
        """
        Raises:
            ValueError: the file cannot be read, or a user in it is of a kind that is not known here.
        """
        config, directory = read_config(path), Path(path).parent
        self._users = {user.get("name") or "": identity_of(user.get("user") or {}, directory) for user in config.get("users") or ()}
        self._default = _current_user(config)

    def of(self, config: ClientConfig) -> Identity | None:
        """The user who is named for the host, for a part of it, or for all; else that of the current context."""
        return next((self._users[name] for name in self._names(config.host_port) if name in self._users), None)

    def _names(self, host_port: str) -> Iterator[str]:
        yield from _wider(host_port)
        if host_port.endswith(_HTTPS):
            yield from _wider(host_port.removesuffix(_HTTPS))
        yield "*"
        if self._default:
            yield self._default


def _wider(name: str) -> Iterator[str]:
    """`a.b.c`, `*.b.c`, `*.c`."""
    yield name
    steps = name.split(".")
    for i in range(1, len(steps)):
        yield f"*.{'.'.join(steps[i:])}"


def _current_user(config: Object) -> str:
    current = config.get("current-context") or ""
    contexts = (one.get("context") or {} for one in config.get("contexts") or () if current and (one.get("name") or "") == current)
    return next((context.get("user") or "" for context in contexts), "")
