"""Controllers of bootstrap tokens: one deletes expired tokens, the other signs cluster-info with the valid ones.

Joining machines verify the ConfigMap cluster-info by these signatures. As upstream, neither controller runs unless
`--controllers` names it.
Upstream: pkg/controller/bootstrap/{tokencleaner,bootstrapsigner,util}.go,
k8s.io/cluster-bootstrap/{token/jws,util/secrets}.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import time
from datetime import datetime
from typing import Final

import orjson

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

SECRETS: Final = GroupVersionResource("", "v1", "secrets")
CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_TYPE: Final = "bootstrap.kubernetes.io/token"
_NAME: Final = re.compile(r"bootstrap-token-([a-z0-9]{6})")
_SIGNATURE: Final = "jws-kubeconfig-"


def _tokens(client: Client) -> Informer:
    return Informer(client, SECRETS, "kube-system", field_selector=f"type={_TYPE}")


class TokenCleaner:
    """The controller that deletes Secrets of bootstrap tokens when the tokens expire."""

    name = "token-cleaner-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._secrets = _tokens(client)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._secrets.handlers.append(self._on_secret)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._secrets.run())
            await self._secrets.synced.wait()
            group.create_task(self._queue.run())

    def _on_secret(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        secret = self._secrets.get("kube-system", name)
        if secret is None:
            return
        remaining = seconds_left(secret)
        if remaining is None:
            return
        if remaining > 0:
            self._queue.add_after(name, remaining)
            return
        try:
            await self._client.delete(
                SECRETS, "kube-system", name, {"preconditions": {"uid": secret["metadata"]["uid"]}}
            )
        except StatusError as error:
            if error.code not in (404, 409):
                raise


class BootstrapSigner:
    """The controller that signs the ConfigMap cluster-info with each valid bootstrap token that may sign."""

    name = "bootstrap-signer-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._secrets = _tokens(client)
        self._maps = Informer(client, CONFIG_MAPS, "kube-public", field_selector="metadata.name=cluster-info")
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sign)
        for informer in (self._secrets, self._maps):
            informer.handlers.append(lambda old, new: self._queue.add("cluster-info"))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._secrets.run())
            group.create_task(self._maps.run())
            await self._secrets.synced.wait()
            await self._maps.synced.wait()
            group.create_task(self._queue.run())

    async def _sign(self, name: str) -> None:
        info = self._maps.get("kube-public", name)
        data = (info or {}).get("data") or {}
        if info is None or "kubeconfig" not in data:
            return
        signed_data = {key: value for key, value in data.items() if not key.startswith(_SIGNATURE)}
        for secret in self._secrets.objects.values():
            if (token := signing_token(secret)) is not None:
                signed_data[_SIGNATURE + token[0]] = detached_signature(data["kubeconfig"], *token)
        if signed_data == data:
            return
        try:
            await self._client.update(CONFIG_MAPS, "kube-public", {**info, "data": signed_data})
        except StatusError as error:
            if error.code not in (404, 409):  # a concurrent change triggers another event
                raise


def _value(secret: Object, key: str) -> str:
    """Return a decoded value of the Secret's data, or "" if it is missing."""
    return base64.b64decode((secret.get("data") or {}).get(key) or "").decode("utf-8", "replace")


def seconds_left(secret: Object) -> float | None:
    """Return the seconds until the bootstrap token in the Secret expires.

    Returns:
        None if it never expires; 0.0 if it has expired or its expiration cannot be parsed.
    """
    text = _value(secret, "expiration")
    if not text:
        return None
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - time.time()) if "T" in text else 0.0
    except ValueError:
        return 0.0


def signing_token(secret: Object) -> tuple[str, str] | None:
    """Return the token id and the token secret in a Secret, if they are valid and usage-bootstrap-signing is "true".

    Args:
        secret: a Secret of a bootstrap token.

    Returns:
        The pair (id, secret), or None.
    """
    match = _NAME.fullmatch(secret["metadata"]["name"])
    token_id, token = _value(secret, "token-id"), _value(secret, "token-secret")
    if match is None or match[1] != token_id or not token or seconds_left(secret) == 0.0:
        return None
    return (token_id, token) if _value(secret, "usage-bootstrap-signing") == "true" else None


def detached_signature(content: str, token_id: str, token: str) -> str:
    """Return a compact JWS (HS256) with detached content (RFC 7515, appendix F).

    Args:
        content: the text to sign.
        token_id: the key id in the header.
        token: the key.
    """
    header = _base64url(orjson.dumps({"alg": "HS256", "kid": token_id}))
    signed = hmac.new(token.encode(), f"{header}.{_base64url(content.encode())}".encode(), hashlib.sha256)
    return f"{header}..{_base64url(signed.digest())}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
