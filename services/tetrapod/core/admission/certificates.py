"""The admission plugins of the certificates.k8s.io group.

Approving, signing and attesting require a permission on the resource `signers`, by the signer's name or by its domain
(`example.com/*`).
Upstream: plugin/pkg/admission/certificates/{approval,signing,subjectrestriction,ctbattest}.
"""

from __future__ import annotations

import base64
from typing import Final

from tetrapod.core.certificates.signers import GROUP, authorized_for_signer
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.machinery.garbage_collection import only_owners_and_finalizers_differ
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_MASTERS: Final = "system:masters"


class _SigningRequestPlugin(Plugin):
    """The base of plugins for CertificateSigningRequests and one of their subresources."""

    subresource = ""

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource, attributes.subresource) == (GROUP, "certificatesigningrequests", self.subresource)


class _SignerRight(_SigningRequestPlugin):
    """The base of plugins that require a verb on the signer."""

    operations = frozenset({"UPDATE"})
    verb = ""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def _require(self, attributes: Attributes) -> None:
        signer = _signer_of(attributes.old_object)
        if not await authorized_for_signer(self._authorizer, attributes.user, self.verb, signer):
            raise forbidden(
                attributes, f"user not permitted to {self.verb} requests with signerName {go_quote(signer)}"
            )


class CertificateApproval(_SignerRight):
    """Require the verb `approve` for updates of `/approval`."""

    name = "CertificateApproval"
    subresource, verb = "approval", "approve"

    async def validate(self, attributes: Attributes) -> None:
        await self._require(attributes)


class CertificateSigning(_SignerRight):
    """Require the verb `sign` for updates of the status that change the certificate or the conditions."""

    name = "CertificateSigning"
    subresource, verb = "status", "sign"

    async def validate(self, attributes: Attributes) -> None:
        old, new = (attributes.old_object or {}).get("status") or {}, (attributes.object or {}).get("status") or {}
        if any((old.get(key) or None) != (new.get(key) or None) for key in ("certificate", "conditions")):
            await self._require(attributes)


class ClusterTrustBundleAttest(Plugin):
    """Require the verb `attest` on the signer to create or update a ClusterTrustBundle that names a signer.

    Upstream: plugin/pkg/admission/certificates/ctbattest/admission.go.
    """

    name = "ClusterTrustBundleAttest"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource) == (GROUP, "clustertrustbundles")

    async def validate(self, attributes: Attributes) -> None:
        """Check the new object: validation rejects a changed signer name."""
        signer = _signer_of(attributes.object)
        if not signer:
            return
        new, old = attributes.object, attributes.old_object
        if (
            attributes.operation == "UPDATE"
            and new is not None
            and old is not None
            and only_owners_and_finalizers_differ(new, old)
        ):
            return  # storage migration and garbage collection change nothing that the signer vouches for
        if not await authorized_for_signer(self._authorizer, attributes.user, "attest", signer):
            raise forbidden(attributes, f"user not permitted to attest for signerName {go_quote(signer)}")


def _signer_of(obj: Object | None) -> str:
    return str(((obj or {}).get("spec") or {}).get("signerName") or "")


class CertificateSubjectRestriction(_SigningRequestPlugin):
    """Reject requests for client certificates that would make the holder a member of system:masters."""

    name = "CertificateSubjectRestriction"
    operations = frozenset({"CREATE"})

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if spec.get("signerName") == _CLIENT_SIGNER and _MASTERS in _organizations(spec):
            raise forbidden(attributes, f"use of {_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


def _organizations(spec: Object) -> set[str]:
    """Return the organizations of the subject of a PKCS#10 request."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or ""))
    except ValueError:
        return set()  # validation has rejected it already
    return {str(attribute.value) for attribute in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)}
