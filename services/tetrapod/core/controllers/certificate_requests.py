"""Controllers that approve the certificate requests of kubelets and sign approved requests.

They run only if --cluster-signing-* flags name the certificate and the key of a CA.

Upstream: pkg/controller/certificates/{approver/sarapprove,signer/signer}.go.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tetrapod.core.certificates.certificate_signing_requests.validation import parse_request
from tetrapod.core.certificates.issuing import issue, lifetime
from tetrapod.core.certificates.kubelet_requests import KUBELET_CLIENT, client_error, common_name, signer_error
from tetrapod.core.controllers.certificate_cleaners import REQUESTS
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.timestamps import now, now_rfc3339

if TYPE_CHECKING:
    from cryptography import x509

_REVIEWS: Final = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")
_APPROVALS: Final = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}
"""The subresources that the requester must be allowed to create, with the messages of the approvals."""


class NotAuthorizedError(Exception):
    """The error that a client must not get a kubelet's client certificate without manual approval.

    The approver raises it, so that the work queue retries the request later, as upstream.
    """


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The CAs with which the controller signs requests to the built-in signers.

    Attributes:
        files: the paths of a CA's certificate and private key, by the name of the signer. If it is empty, the
            controllers do not run.
        duration: the longest time that certificates are valid.
    """

    files: Mapping[str, tuple[Path, Path]] = field(default_factory=dict)
    duration: timedelta = timedelta(days=365)

    def authority(self, signer: str) -> tuple[x509.Certificate, Any]:
        """Read the certificate and the key of a signer's CA.

        Raises:
            OSError: a file cannot be read.
            ValueError: a file is malformed, the key is encrypted, or there are several certificates. The beginning of
                the text is upstream's, if it names the file.
        """
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        certificate_file, key_file = self.files[signer]
        certificates = x509.load_pem_x509_certificates(certificate_file.read_bytes())
        if len(certificates) != 1:
            text = f"expected 1 certificate, found {len(certificates)}"
            raise ValueError(f'error reading CA cert file "{certificate_file}": {text}')
        try:
            key = load_pem_private_key(key_file.read_bytes(), None)
        except (TypeError, ValueError, UnsupportedAlgorithm) as error:  # TypeError: the key is encrypted
            raise ValueError(f'error reading CA private key file "{key_file}": {error}') from None
        return certificates[0], key


class _RequestController:
    """The base class of both controllers, which calls `handle` for requests without a certificate as they change.

    Args:
        client: sends the requests of the controller.
    """

    name = ""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._requests = Informer(client, REQUESTS)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._requests.handlers.append(self._on_request)

    async def run(self) -> None:
        """Follow CertificateSigningRequests until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._requests.run())
            await self._requests.synced.wait()
            group.create_task(self._queue.run(5))

    def _on_request(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        request = self._requests.get("", name)
        if request is not None and not (request.get("status") or {}).get("certificate"):
            await self.handle(request)

    async def handle(self, request: Object) -> None:
        """Handle one request without a certificate.

        Raises:
            Exception: the request is to be handled again later.
        """
        raise NotImplementedError


class RequestApprover(_RequestController):
    """The controller that approves requests for client certificates of kubelets, if the requester is authorized.

    The requester must be allowed to `create` certificatesigningrequests/nodeclient, or selfnodeclient for its own name.
    """

    name = "certificatesigningrequest-approving-controller"

    async def handle(self, request: Object) -> None:
        spec = request["spec"]
        if _conditions(request) & {"Approved", "Denied"} or spec["signerName"] != KUBELET_CLIENT:
            return
        name = await asyncio.to_thread(_client_name, spec)
        if name is None:
            return
        own = name == (spec.get("username") or "")
        subresources = [name for name in _APPROVALS if own or name != "selfnodeclient"]
        for subresource in subresources:
            if await self._allowed(spec, subresource):
                condition = {"type": "Approved", "status": "True", "reason": "AutoApproved"}
                approved = _with_condition(request, {**condition, "message": _APPROVALS[subresource]})
                await self._client.update(REQUESTS, "", approved, subresource="approval")
                return
        raise NotAuthorizedError(
            f'recognized csr "{request["metadata"]["name"]}" as [{" ".join(subresources)}] '
            "but subject access review was not approved"
        )

    async def _allowed(self, spec: Object, subresource: str) -> bool:
        attributes = {
            "group": REQUESTS.group,
            "resource": REQUESTS.resource,
            "subresource": subresource,
            "verb": "create",
            "version": "*",
        }
        review = {"resourceAttributes": attributes, "user": spec.get("username") or ""}
        review |= {key: spec[key] for key in ("uid", "groups", "extra") if spec.get(key)}
        answer = await self._client.create(
            _REVIEWS,
            "",
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": review},
        )
        return bool((answer.get("status") or {}).get("allowed"))


def _client_name(spec: Object) -> str | None:
    """Return the common name of a request for a kubelet's client certificate, or None if it is a different request.

    The request may have a megabyte, so call this in a thread.
    """
    parsed = parse_request(spec["request"])
    return None if client_error(parsed, spec.get("usages") or ()) else common_name(parsed)


class RequestSigner(_RequestController):
    """The controller that issues certificates for approved requests of the signers that have a CA."""

    name = "certificatesigningrequest-signing-controller"

    def __init__(self, client: Client, keys: SigningKeys) -> None:
        super().__init__(client)
        self._keys = keys

    async def handle(self, request: Object) -> None:
        spec, conditions = request["spec"], _conditions(request)
        if "Approved" not in conditions or conditions & {"Denied", "Failed"}:
            return
        if spec["signerName"] not in self._keys.files:
            return
        certificate, error = await asyncio.to_thread(self._sign, spec)
        if error:
            condition = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": error}
            changed = _with_condition(request, {**condition, "lastUpdateTime": now_rfc3339()})
        else:
            changed = {
                **request,
                "status": {**(request.get("status") or {}), "certificate": base64.b64encode(certificate).decode()},
            }
        await self._client.update(REQUESTS, "", changed, subresource="status")

    def _sign(self, spec: Object) -> tuple[bytes, str]:
        """Return the certificate for a request, as PEM, or the reason why its signer does not sign it; one is empty.

        The request may have a megabyte, so call this in a thread.
        """
        signer, usages = spec["signerName"], spec.get("usages") or ()
        parsed = parse_request(spec["request"])
        if error := signer_error(parsed, usages, signer):
            return b"", error
        life = lifetime(spec.get("expirationSeconds"), self._keys.duration)
        authority = self._keys.authority(signer)  # the files may have been replaced
        return issue(parsed, authority, usages, life, now()), ""


def _conditions(request: Object) -> set[str]:
    return {condition.get("type") or "" for condition in (request.get("status") or {}).get("conditions") or ()}


def _with_condition(request: Object, condition: Object) -> Object:
    status = request.get("status") or {}
    return {**request, "status": {**status, "conditions": [*(status.get("conditions") or ()), condition]}}
