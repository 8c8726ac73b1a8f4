"""`Cluster`: the connection of an aggregated server to its Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tetrapod.generic.client.http import http_client
from tetrapod.generic.client.interface import Client
from tetrapod.generic.proxy import BackendPool, ClientTLS
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of the API, its CA, and the credentials: a client certificate (in `tls`), a token file, or a token."""

    url: str
    tls: ClientTLS
    token_file: str = ""
    token: str = ""

    @classmethod
    def of_kubeconfig(cls, path: str) -> Self:
        """Read the connection from a kubeconfig.

        Raises:
            ValueError: the file cannot be read, or is incomplete.
        """
        target = read_kubeconfig(path)
        authorization = dict(target.identity.headers).get(b"authorization", b"").decode()
        return cls(target.url, target.endpoint.tls or ClientTLS(), target.identity.token_file, authorization.removeprefix("Bearer "))

    @classmethod
    def around_this_pod(cls) -> Self:
        """Return the connection of a pod: the service `kubernetes`, and the pod's service account."""
        return cls("https://kubernetes.default.svc", ClientTLS(ca_data=(_ACCOUNT / "ca.crt").read_text()), str(_ACCOUNT / "token"))

    def client(self, pool: BackendPool, user_agent: str) -> Client:
        """Return a client of the API."""
        return http_client(pool, self.url, self.tls, user_agent, token_file=self.token_file, token=self.token)
