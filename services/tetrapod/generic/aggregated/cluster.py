"""`Cluster`: the connection of an aggregated server to its Kubernetes API."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

from tetrapod.generic.client.http import http_client
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.service_account import MOUNT
from tetrapod.generic.proxy import BackendPool, ClientTLS
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig


@dataclass(frozen=True, slots=True)
class Cluster:
    """The connection of an aggregated server to its Kubernetes API.

    Attributes:
        url: the base URL of the API server.
        tls: the CA of the API server, and optionally a client certificate.
        token_file: a file with a bearer token, which is read again when it changes; "" for none.
        token: a bearer token; "" for none.
    """

    url: str
    tls: ClientTLS
    token_file: str = ""
    token: str = ""

    @classmethod
    def from_kubeconfig(cls, path: str) -> Self:
        """Return the connection of the current context of a kubeconfig. It does not connect yet.

        Args:
            path: the path of the kubeconfig.

        Raises:
            ValueError: the file cannot be read, or is incomplete.
        """
        target = read_kubeconfig(path)
        credentials = target.credentials
        return cls(target.url, target.endpoint.tls or ClientTLS(), credentials.token_file, credentials.bearer_token)

    @classmethod
    def in_cluster(cls) -> Self:
        """Return the connection for a pod: to the Service `kubernetes`, with the token of the pod's service account.

        Raises:
            OSError: the service account is not mounted.
        """
        return cls(
            "https://kubernetes.default.svc",
            ClientTLS(ca_data=(MOUNT / "ca.crt").read_text("utf-8")),
            str(MOUNT / "token"),
        )

    @classmethod
    def of_kubeconfig(cls, path: str) -> Self:
        """Call `from_kubeconfig`. Deprecated: removed after the next release."""
        warnings.warn(
            "Cluster.of_kubeconfig is deprecated, use Cluster.from_kubeconfig", DeprecationWarning, stacklevel=2
        )
        return cls.from_kubeconfig(path)

    @classmethod
    def around_this_pod(cls) -> Self:
        """Call `in_cluster`. Deprecated: removed after the next release."""
        warnings.warn("Cluster.around_this_pod is deprecated, use Cluster.in_cluster", DeprecationWarning, stacklevel=2)
        return cls.in_cluster()

    def client(self, pool: BackendPool, user_agent: str) -> Client:
        """Return a client of the API with these credentials. It does not connect yet.

        Args:
            pool: the connections that the client uses; the caller closes it.
            user_agent: the User-Agent header.
        """
        return http_client(pool, self.url, self.tls, user_agent, token_file=self.token_file, token=self.token)
