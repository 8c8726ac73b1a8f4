"""The controller that invalidates and later deletes unused token Secrets of service accounts.

It considers only Secrets that are listed in their account's `secrets`: former Kubernetes versions created those
automatically, users did not.
Upstream: pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import every
from tetrapod.generic.client.reads import get_or_none
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now, parse

log = logging.getLogger(__name__)

_SECRETS: Final = GroupVersionResource("", "v1", "secrets")
_ACCOUNTS: Final = GroupVersionResource("", "v1", "serviceaccounts")
_PODS: Final = GroupVersionResource("", "v1", "pods")
_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_TYPE: Final = "kubernetes.io/service-account-token"
_LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
_INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
_DAY: Final = "%Y-%m-%d"
_UNUSED_FOR: Final = timedelta(days=365)
_PERIOD: Final = 24 * 3600.0


class LegacyTokenCleaner:
    """The controller that invalidates and deletes unused token Secrets of service accounts.

    It checks all of them every `period` seconds. Only tests set `period` and `clock`.
    """

    name = "legacy-serviceaccount-token-cleaner-controller"

    def __init__(self, client: Client, period: float = _PERIOD, clock: Callable[[], datetime] = now) -> None:
        self._client = client
        self._period = period
        self._clock = clock

    async def run(self) -> None:
        await every(self._period, self.name, self.clean, level=logging.DEBUG)

    async def clean(self) -> None:
        """Check all token Secrets once: label those that are unused, and delete those that were labelled a year ago.

        Nothing happens until the use of tokens has been tracked for a year and a day.

        Raises:
            StatusError: 404, the ConfigMap that records the start of tracking does not exist; others if the server
                rejected a request.
            Unavailable: the server cannot be reached.
        """
        moment = self._clock()
        tracking = await self._client.get(
            _CONFIG_MAPS, "kube-system", "kube-apiserver-legacy-service-account-token-tracking"
        )
        tracked_since = _day((tracking.get("data") or {}).get("since", ""))
        if tracked_since is None or moment.date() < tracked_since.date() + timedelta(days=1) + _UNUSED_FOR:
            return
        page = await self._client.list(_SECRETS, fieldSelector=f"type={_TYPE}")
        for secret in page.get("items") or ():
            if self._is_unused(secret, moment) and await self._is_left_over(secret):
                await self._retire(secret, moment)

    def _is_unused(self, secret: Object, moment: datetime) -> bool:
        """Return whether the Secret is older than a year and has no label of a use of its token within a year.

        A Secret that is being deleted or has an invalid label does not count as unused.
        """
        meta = secret["metadata"]
        if meta.get("deletionTimestamp") or parse(meta["creationTimestamp"]) >= moment - _UNUSED_FOR:
            return False
        last_used = (meta.get("labels") or {}).get(_LAST_USED)
        if last_used is None:
            return True
        return _day(last_used) is not None and last_used < (moment - _UNUSED_FOR).strftime(_DAY)

    async def _is_left_over(self, secret: Object) -> bool:
        """Return whether the token Secret was created automatically for an existing account, and no pod uses it.

        An account lists such Secrets in its `secrets`.

        Raises:
            StatusError: the server did not return the account or the pods.
            Unavailable: the server cannot be reached.
        """
        meta = secret["metadata"]
        annotations = meta.get("annotations") or {}
        name, uid = (
            annotations.get("kubernetes.io/service-account.name"),
            annotations.get("kubernetes.io/service-account.uid"),
        )
        if not name:
            return False
        account = await get_or_none(self._client, _ACCOUNTS, meta["namespace"], name)
        if account is None or (uid and uid != account["metadata"]["uid"]):
            return False
        if not any(reference.get("name") == meta["name"] for reference in account.get("secrets") or ()):
            return False
        pods = await self._client.list(_PODS, meta["namespace"])
        return not any(meta["name"] in set(_secret_names(pod.get("spec"))) for pod in pods.get("items") or ())

    async def _retire(self, secret: Object, moment: datetime) -> None:
        """Label the Secret as invalid since today, or delete it if it has had the label for a year.

        The errors 404 and 409 are ignored: the Secret is gone or has changed.

        Args:
            secret: an unused token Secret.
            moment: the current time.
        """
        meta = secret["metadata"]
        since = (meta.get("labels") or {}).get(_INVALID_SINCE, "")
        try:
            if _day(since) is None:
                label = {_INVALID_SINCE: moment.strftime(_DAY)}
                await self._client.patch(
                    _SECRETS, meta["namespace"], meta["name"], {"metadata": {"uid": meta["uid"], "labels": label}}
                )
            elif since < (moment - _UNUSED_FOR).strftime(_DAY):
                options = {"preconditions": {"resourceVersion": meta["resourceVersion"]}}
                await self._client.delete(_SECRETS, meta["namespace"], meta["name"], options)
        except StatusError as error:
            if error.code not in (404, 409):
                raise


def _day(text: str) -> datetime | None:
    """Parse a date of the form 2006-01-02, as labels have it; return None for other texts."""
    try:
        return datetime.strptime(text, _DAY)
    except ValueError:
        return None


def _secret_names(value: Any) -> Iterator[str]:
    """Yield the names of all Secrets that a pod spec, or a part of it, refers to. Upstream: VisitPodSecretNames."""
    if isinstance(value, list):
        for item in value:
            yield from _secret_names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "secretName" and isinstance(item, str):
                yield item
            elif key in _REFERENCES and isinstance(item, dict):
                yield str(item.get("name", ""))
            elif key == "imagePullSecrets":
                yield from (str(reference.get("name", "")) for reference in item or ())
            yield from _secret_names(item)


_REFERENCES: Final = frozenset(
    {
        "secret",
        "secretRef",
        "secretKeyRef",
        "nodePublishSecretRef",
        "controllerPublishSecretRef",
        "nodeStageSecretRef",
        "controllerExpandSecretRef",
        "nodeExpandSecretRef",
    }
)
