"""How an aggregated server reaches the Kubernetes API that it belongs to."""

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
    """An address, whom to believe there, and who we are: a client certificate (in `tls`), a token's file, or a token."""

    url: str
    tls: ClientTLS
    token_file: str = ""
    token: str = ""

    @classmethod
    def of_kubeconfig(cls, path: str) -> Self:
        """
        Raises:
            ValueError: the file cannot be read, or lacks what is needed.
        """
        target = read_kubeconfig(path)
        said = dict(target.identity.headers).get(b"authorization", b"").decode()
        return cls(target.url, target.endpoint.tls or ClientTLS(), target.identity.token_file, said.removeprefix("Bearer "))

    @classmethod
    def around_this_pod(cls) -> Self:
        """As every pod is told: the service `kubernetes`, and the pod's own service account."""
        return cls("https://kubernetes.default.svc", ClientTLS(ca_data=(_ACCOUNT / "ca.crt").read_text()), str(_ACCOUNT / "token"))

    def client(self, pool: BackendPool, user_agent: str) -> Client:
        return http_client(pool, self.url, self.tls, user_agent, token_file=self.token_file, token=self.token)
