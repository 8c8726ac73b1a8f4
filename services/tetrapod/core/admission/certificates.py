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
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import only_owners_and_finalizers_differ

_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_MASTERS: Final = "system:masters"


class _SigningRequestPlugin(Plugin):
    """The base class of plugins that handle writes of CertificateSigningRequests.

    Attributes:
        subresource: the only subresource that the plugin handles; "" for the requests themselves.
    """

    subresource = ""

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource, attributes.subresource) == (GROUP, "certificatesigningrequests", self.subresource)


class _SignerRight(_SigningRequestPlugin):
    """The base class of plugins that allow an update of a request only to users with a permission on its signer.

    The signer is the one of the stored request.

    Attributes:
        verb: the verb that the user must be allowed to perform on the signer.
    """

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
    """The plugin that requires the verb `approve` on the request's signer for updates of `/approval`."""

    name = "CertificateApproval"
    subresource, verb = "approval", "approve"

    async def validate(self, attributes: Attributes) -> None:
        await self._require(attributes)


class CertificateSigning(_SignerRight):
    """The plugin that requires the verb `sign` on the request's signer for changes of its certificate or conditions.

    Other status updates need no permission on the signer. An empty certificate differs from a missing one.
    """

    name = "CertificateSigning"
    subresource, verb = "status", "sign"

    async def validate(self, attributes: Attributes) -> None:
        old, new = (attributes.old_object or {}).get("status") or {}, (attributes.object or {}).get("status") or {}
        certificate_changed = old.get("certificate") != new.get("certificate")
        if certificate_changed or (old.get("conditions") or None) != (new.get("conditions") or None):
            await self._require(attributes)


class ClusterTrustBundleAttest(Plugin):
    """The plugin that requires the verb `attest` on the signer of a created or updated ClusterTrustBundle.

    Bundles without signerName need none, and neither do updates that change only owner references and finalizers.

    Upstream: plugin/pkg/admission/certificates/ctbattest/admission.go.
    """

    name = "ClusterTrustBundleAttest"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource) == (GROUP, "clustertrustbundles") and feature_gates.enabled("ClusterTrustBundle")

    async def validate(self, attributes: Attributes) -> None:
        """Check the user's permission for the new object's signerName, which equals the stored one: it is immutable.

        Raises:
            StatusError: 403, the user may not attest for the signer.
        """
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
    """The plugin that rejects requests for client certificates of the group system:masters.

    It checks the organizations in requests to the signer `kubernetes.io/kube-apiserver-client`.
    """

    name = "CertificateSubjectRestriction"
    operations = frozenset({"CREATE"})

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if spec.get("signerName") == _CLIENT_SIGNER and _MASTERS in _organizations(spec):
            raise forbidden(attributes, f"use of {_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


def _organizations(spec: Object) -> set[str]:
    """Return the organizations (O) in the subject of a CertificateSigningRequest's PEM request.

    Returns:
        An empty set if the request cannot be parsed; validation rejects it.
    """
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or ""))
    except ValueError:
        return set()  # validation has rejected it already
    return {str(attribute.value) for attribute in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)}
