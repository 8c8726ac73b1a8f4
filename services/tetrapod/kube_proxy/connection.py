"""The connection of the proxy to the API.

Upstream: cmd/kube-proxy/app/server.go, createClient; k8s.io/client-go/rest, InClusterConfig
"""

from __future__ import annotations

import os
from typing import Final

from tetrapod.generic.client.http import http_client
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.service_account import MOUNT
from tetrapod.generic.configuration.version import KUBERNETES
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig
from tetrapod.machinery.golang.ip_addresses import join_host_port

_USER_AGENT: Final = f"kube-proxy/{KUBERNETES} (tetrapod)"
_NO_CLUSTER: Final = (
    "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
)


def connect(pool: BackendPool, kubeconfig: str, server: str) -> Client:
    """Return a client of the API. It does not connect yet.

    Args:
        pool: the connections.
        kubeconfig: the file with the server and the credentials. If it and `server` are empty, those of the pod are
            used.
        server: the URL of the server; "" for that of the kubeconfig.

    Raises:
        ValueError: the file cannot be read or is incomplete, or this process is not in a pod.
        OSError: the service account of the pod is not mounted.
    """
    if not kubeconfig and not server:
        return _of_pod(pool)
    if not kubeconfig:
        return http_client(pool, server, None if server.startswith("http://") else ClientTLS(), _USER_AGENT)
    target = read_kubeconfig(kubeconfig)
    return http_client(
        pool,
        server or target.url,
        target.endpoint.tls or ClientTLS(),
        _USER_AGENT,
        token_file=target.credentials.token_file,
        token=target.credentials.bearer_token,
    )


def _of_pod(pool: BackendPool) -> Client:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ValueError(_NO_CLUSTER)
    tls = ClientTLS(ca_data=(MOUNT / "ca.crt").read_text("utf-8"))
    url = f"https://{join_host_port(host, port)}"
    return http_client(pool, url, tls, _USER_AGENT, token_file=str(MOUNT / "token"))
