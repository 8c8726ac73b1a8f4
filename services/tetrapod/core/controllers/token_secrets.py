"""The controller that fills Secrets of type kubernetes.io/service-account-token and deletes those without an account.

The auth service signs the tokens, because only it has the key. Upstream:
pkg/controller/serviceaccount/tokens_controller.go.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from tetrapod.core.controllers.service_accounts import SERVICE_ACCOUNTS
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

SECRETS: Final = GroupVersionResource("", "v1", "secrets")
TYPE: Final = "kubernetes.io/service-account-token"
_NAME, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
Signer = Callable[[str, str, str], Awaitable[str]]
"""Returns a token for (namespace, service account, secret); "" if the server signs no tokens of Secrets."""


class _Reference(NamedTuple):
    """A deleted Secret and the service account that may refer to it. `uid` is "" if the Secret did not name it."""

    namespace: str
    account: str
    uid: str
    secret: str


class TokenSecretController:
    """The controller that adds token, CA and account uid to token Secrets, and deletes those without an account.

    It also removes a deleted token Secret from the references of its account.

    Args:
        sign: requests a token from the auth service.
        ca: the PEM bundle for `ca.crt`.
    """

    name = "serviceaccount-token-controller"

    def __init__(self, client: Client, sign: Signer, ca: str) -> None:
        self._client = client
        self._sign = sign
        self._ca = ca
        self._secrets = Informer(client, SECRETS, field_selector=f"type={TYPE}")
        self._accounts = Informer(client, SERVICE_ACCOUNTS)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(self.name, self._sync)
        self._references: WorkQueue[_Reference] = WorkQueue(f"{self.name}-references", self._remove_reference)
        self._secrets.handlers.append(self._on_secret)
        self._accounts.handlers.append(self._on_account)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._secrets.run())
            group.create_task(self._accounts.run())
            await self._secrets.synced.wait()
            await self._accounts.synced.wait()
            group.create_task(self._queue.run(2))
            group.create_task(self._references.run())

    def _on_secret(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add((new["metadata"]["namespace"], new["metadata"]["name"]))
        elif old is not None:
            meta = old["metadata"]
            annotations = meta.get("annotations") or {}
            account, uid = annotations.get(_NAME, ""), annotations.get(_UID, "")
            self._references.add(_Reference(meta["namespace"], account, uid, meta["name"]))

    def _on_account(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            namespace, name = old["metadata"]["namespace"], old["metadata"]["name"]
            for secret in self._secrets.objects.values():
                meta = secret["metadata"]
                if meta["namespace"] == namespace and (meta.get("annotations") or {}).get(_NAME) == name:
                    self._queue.add((namespace, meta["name"]))

    async def _sync(self, key: tuple[str, str]) -> None:
        namespace, name = key
        secret = self._secrets.get(namespace, name)
        if secret is None:
            return
        annotations = secret["metadata"].get("annotations") or {}
        account = await self._account(namespace, annotations.get(_NAME, ""))
        if account is None or (annotations.get(_UID) or account["metadata"]["uid"]) != account["metadata"]["uid"]:
            await self._delete(secret)
            return
        data = secret.get("data") or {}
        missing: dict[str, str] = {}
        if data.get("ca.crt") != (ca := _b64(self._ca)):
            missing["ca.crt"] = ca
        if not data.get("namespace"):
            missing["namespace"] = _b64(namespace)
        if not data.get("token"):
            token = await self._sign(namespace, account["metadata"]["name"], name)
            if token:
                missing["token"] = _b64(token)
        if not missing:
            return
        changed = {
            **secret,
            "metadata": {**secret["metadata"], "annotations": {**annotations, _UID: account["metadata"]["uid"]}},
            "data": {**data, **missing},
        }
        await self._client.update(SECRETS, namespace, changed)

    async def _remove_reference(self, reference: _Reference) -> None:
        """Remove a deleted Secret from `secrets` of its service account, unless that is gone or is another one.

        Raises:
            StatusError: 409, the account has changed since it was read, and other errors.
        """
        namespace, name, uid, secret = reference
        if self._accounts.get(namespace, name) is None:
            return
        account = await get_or_none(self._client, SERVICE_ACCOUNTS, namespace, name)
        if account is None or (uid and uid != account["metadata"]["uid"]):
            return
        secrets = account.get("secrets") or []
        kept = [one for one in secrets if one.get("name") != secret]
        if len(kept) < len(secrets):
            await self._client.update(SERVICE_ACCOUNTS, namespace, {**account, "secrets": kept})

    async def _account(self, namespace: str, name: str) -> Object | None:
        """Return the service account, or None if it does not exist or `name` is "".

        An account that is missing in the informer's cache is read from the API, because it may be new. An error of that
        request other than 404 is raised.
        """
        if not name:
            return None
        try:
            return self._accounts.get(namespace, name) or await self._client.get(SERVICE_ACCOUNTS, namespace, name)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    async def _delete(self, secret: Object) -> None:
        meta = secret["metadata"]
        options = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
        try:
            await self._client.delete(SECRETS, meta["namespace"], meta["name"], options)
        except StatusError as error:
            if error.code != 404:
                raise


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
