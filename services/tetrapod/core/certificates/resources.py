"""The list of the kinds of certificates.k8s.io."""

from __future__ import annotations

from tetrapod.core.certificates import cluster_trust_bundles
from tetrapod.core.certificates.certificate_signing_requests import definition as certificate_signing_requests
from tetrapod.core.certificates.pod_certificate_requests import definition as pod_certificate_requests
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions(authorizer: Authorizer | None) -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group certificates.k8s.io.

    Args:
        authorizer: authorizes signers to change the status of PodCertificateRequests; None skips the check.
    """
    return [
        certificate_signing_requests.definition(),
        cluster_trust_bundles.definition(),
        pod_certificate_requests.definition(authorizer),
    ]
