"""Who may approve and sign, and what no certificate may say (upstream: certificates/{approval,signing,subjectrestriction}).

Approving and signing take a right on the signer, `signers` in certificates.k8s.io, by its name or its domain's `example.com/*`.
"""

from __future__ import annotations

import base64
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.authorization.interface import Attributes as Asked
from tetrapod.generic.authorization.interface import Authorizer, Decision
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object

_GROUP: Final = "certificates.k8s.io"
_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_MASTERS: Final = "system:masters"


class _SigningRequestPlugin(Plugin):
    subresource = ""

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource, attributes.subresource) == (_GROUP, "certificatesigningrequests", self.subresource)


class _SignerRight(_SigningRequestPlugin):
    operations = frozenset({"UPDATE"})
    verb = ""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def _require(self, attributes: Attributes) -> None:
        signer = ((attributes.old_object or {}).get("spec") or {}).get("signerName") or ""
        for name in (signer, signer.partition("/")[0] + "/*"):
            asked = Asked(attributes.user, self.verb, group=_GROUP, version="*", resource="signers", name=name, resource_request=True)
            if (await self._authorizer.authorize(asked)).decision is Decision.ALLOW:
                return
        raise forbidden(attributes, f"user not permitted to {self.verb} requests with signerName {go_quote(signer)}")


class CertificateApproval(_SignerRight):
    name = "CertificateApproval"
    subresource, verb = "approval", "approve"

    async def validate(self, attributes: Attributes) -> None:
        await self._require(attributes)


class CertificateSigning(_SignerRight):
    """Only what changes the certificate or the conditions is signing."""

    name = "CertificateSigning"
    subresource, verb = "status", "sign"

    async def validate(self, attributes: Attributes) -> None:
        old, new = (attributes.old_object or {}).get("status") or {}, (attributes.object or {}).get("status") or {}
        if any((old.get(key) or None) != (new.get(key) or None) for key in ("certificate", "conditions")):
            await self._require(attributes)


class CertificateSubjectRestriction(_SigningRequestPlugin):
    """No client certificate makes its owner a member of system:masters."""

    name = "CertificateSubjectRestriction"
    operations = frozenset({"CREATE"})

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if spec.get("signerName") == _CLIENT_SIGNER and _MASTERS in _organizations(spec):
            raise forbidden(attributes, f"use of {_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


def _organizations(spec: Object) -> set[str]:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or ""))
    except ValueError:
        return set()  # validation has said what is wrong with it
    return {str(attribute.value) for attribute in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)}
