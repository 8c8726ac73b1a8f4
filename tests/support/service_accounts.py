"""The ServiceAccount `default` of a namespace. The admission plugin ServiceAccount rejects pods until it exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from support.https_client import HttpsClient
from support.waiting import until


class Answer(Protocol):
    """The answer to a request, of any client."""

    @property
    def status(self) -> int: ...


def wait_for_service_account(send: Callable[[str, str], Answer], namespace: str = "default") -> None:
    """Wait until the controller of service accounts has created the ServiceAccount `default` of a namespace.

    Args:
        send: sends a request of an administrator, such as `HttpsClient.call`. Its arguments are a method and a path.
        namespace: the namespace, which must exist or be created by the server.
    """
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    until(lambda: send("GET", path).status, lambda status: status == 200, description=f"GET {path}")


def ensure_service_account(client: HttpsClient) -> None:
    """Wait until a server answers, and create the ServiceAccount that pods of the namespace `default` need.

    In Tetrapod a controller creates it. A kube-apiserver runs without its controllers.
    """
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    reply = client.until(lambda reply: reply.status in (200, 404), "GET", f"{accounts}/default", timeout=60)
    if reply.status == 404:
        client.call("POST", accounts, {"metadata": {"name": "default"}})
