"""Controllers that delete certificate requests.

They delete requests that are approved, denied, failed or expired, or have waited too long. They list all requests
periodically instead of watching them.

Upstream: pkg/controller/certificates/cleaner/{cleaner,pcrcleaner}.go.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import every
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now, parse

log = logging.getLogger(__name__)

REQUESTS: Final = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
POD_REQUESTS: Final = GroupVersionResource("certificates.k8s.io", "v1", "podcertificaterequests")
_DONE: Final = timedelta(hours=1)
_WAITING: Final = timedelta(hours=24)
_POD_REQUEST: Final = timedelta(minutes=30)


class _Cleaner:
    """The base class of both cleaners, which deletes the requests that are over (`is_over`) every `period` seconds.

    Subclasses set `name`, the name of the controller, and `gvr`, the resource, and implement `is_over`. Only tests pass
    `period` and `clock`, which returns the current time.
    """

    name = ""
    gvr = REQUESTS

    def __init__(self, client: Client, period: float, clock: Callable[[], datetime] = now) -> None:
        self._client = client
        self._period = period
        self._clock = clock

    async def run(self) -> None:
        await every(self._period, self.name, self.clean)

    async def clean(self) -> None:
        """List all requests once and delete those for which `is_over` returns True.

        Raises:
            StatusError, Unavailable: the requests cannot be listed. An error response to a deletion is logged instead.
        """
        page = await self._client.list(self.gvr)
        for request in page.get("items") or ():
            if self.is_over(request, self._clock()):
                await self._delete(request["metadata"])

    def is_over(self, request: Object, moment: datetime) -> bool:
        """Return whether the request is to be deleted.

        Args:
            moment: the current time.
        """
        raise NotImplementedError

    async def _delete(self, metadata: Object) -> None:
        try:
            options = {"preconditions": {"uid": metadata["uid"]}}
            await self._client.delete(self.gvr, metadata.get("namespace", ""), metadata["name"], options)
        except StatusError as error:
            if error.code not in (404, 409):
                log.warning("%s: %s: %s", self.name, metadata["name"], error)


class SigningRequestCleaner(_Cleaner):
    """The cleaner of CertificateSigningRequests.

    It deletes a request 1 hour after its certificate was issued or it was denied or failed, when its certificate has
    expired, and after 24 hours without a certificate.
    """

    name = "certificatesigningrequest-cleaner-controller"

    def __init__(self, client: Client, period: float = 3600.0, clock: Callable[[], datetime] = now) -> None:
        super().__init__(client, period, clock)

    def is_over(self, request: Object, moment: datetime) -> bool:
        status = request.get("status") or {}
        conditions, certificate = status.get("conditions") or (), status.get("certificate")
        if not conditions:
            return _older(request["metadata"].get("creationTimestamp"), _WAITING, moment)
        for condition in conditions:
            condition_type, updated = condition.get("type"), condition.get("lastUpdateTime")
            if condition_type in ("Denied", "Failed") and _older(updated, _DONE, moment):
                return True
            if condition_type == "Approved" and _older(updated, _DONE if certificate else _WAITING, moment):
                return True
            if condition_type == "Approved" and certificate and _expired(certificate, moment):
                return True
        return False


class PodCertificateRequestCleaner(_Cleaner):
    """The cleaner of PodCertificateRequests, which deletes each 30 minutes after its creation."""

    name = "podcertificaterequest-cleaner-controller"
    gvr = POD_REQUESTS

    def __init__(self, client: Client, period: float = 300.0, clock: Callable[[], datetime] = now) -> None:
        super().__init__(client, period, clock)

    def is_over(self, request: Object, moment: datetime) -> bool:
        return moment >= parse(request["metadata"]["creationTimestamp"]) + _POD_REQUEST


def _older(text: str | None, age: timedelta, moment: datetime) -> bool:
    return bool(text) and moment - parse(str(text)) > age


def _expired(certificate: str, moment: datetime) -> bool:
    """Return whether the certificate has expired at `moment`; False if it cannot be parsed.

    Args:
        certificate: base64 of a PEM certificate.
    """
    try:
        return moment > x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc
    except ValueError:
        return False
