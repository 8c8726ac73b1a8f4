"""The rules for the certificate requests of kubelets and of other clients of the API server.

Upstream: pkg/apis/certificates/helpers.go; pkg/controller/certificates/signer/signer.go, validAPIServerClientUsages.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest, GeneralName

KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
API_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
LEGACY: Final = "kubernetes.io/legacy-unknown"

_NODE: Final = "system:node:"
_CLIENT_USAGES: Final = ("digital signature", "key encipherment")


def signer_error(request: CertificateSigningRequest, usages: Collection[str], signer: str) -> str:
    """Return why a built-in signer rejects a certificate request, or "" if it accepts the request.

    Args:
        request: the parsed PKCS#10 request.
        usages: spec.usages.
        signer: spec.signerName. A signer that is not one of those in this module accepts every request.
    """
    if signer == KUBELET_SERVING:
        return serving_error(request, usages)
    if signer == KUBELET_CLIENT:
        return client_error(request, usages)
    return _api_client_error(usages) if signer == API_CLIENT else ""


def serving_error(request: CertificateSigningRequest, usages: Collection[str]) -> str:
    """Return why a certificate request is not valid for the serving certificate of a kubelet, or "" if it is.

    The organization is system:nodes and the common name begins with `system:node:`. The alternative names are DNS names
    or IP addresses, at least one, and the usages are those of a server.
    """
    names = alternative_names(request)
    if _subject(request, "O") != ["system:nodes"]:
        return "subject organization is not system:nodes"
    if not names["DNS"] and not names["IP"]:
        return "DNS or IP subjectAltName is required"
    for kind in ("Email", "URI"):
        if names[kind]:
            return f"{kind} subjectAltNames are not allowed"
    return _usages_error(usages, "server auth") or _common_name_error(request)


def client_error(request: CertificateSigningRequest, usages: Collection[str]) -> str:
    """Return why a certificate request is not valid for the client certificate of a kubelet, or "" if it is.

    The organization is system:nodes and the common name begins with `system:node:`. Alternative names are not allowed,
    and the usages are those of a client.
    """
    names = alternative_names(request)
    if _subject(request, "O") != ["system:nodes"]:
        return "subject organization is not system:nodes"
    for kind in ("DNS", "Email", "IP", "URI"):
        if names[kind]:
            return f"{kind} subjectAltNames are not allowed"
    return _common_name_error(request) or _usages_error(usages, "client auth")


def common_name(request: CertificateSigningRequest) -> str:
    """Return the common name of a request's subject; "" if it has none. The last of several counts, as in Go."""
    return (["", *_subject(request, "CN")])[-1]


def alternative_names(request: CertificateSigningRequest) -> dict[str, list[GeneralName]]:
    """Return the alternative names of a request by kind: "DNS", "Email", "IP" and "URI", the kinds that Go keeps.

    The dictionary always has all four, in Go's order; a kind without names has [].
    """
    from cryptography import x509

    kinds: dict[str, type[GeneralName]] = {
        "DNS": x509.DNSName,
        "Email": x509.RFC822Name,
        "IP": x509.IPAddress,
        "URI": x509.UniformResourceIdentifier,
    }
    try:
        names = list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        names = []
    return {kind: [name for name in names if isinstance(name, type_)] for kind, type_ in kinds.items()}


def _api_client_error(usages: Collection[str]) -> str:
    for usage in usages:
        if usage != "client auth" and usage not in _CLIENT_USAGES:
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _common_name_error(request: CertificateSigningRequest) -> str:
    starts = common_name(request).startswith(_NODE)
    return "" if starts else "subject common name does not begin with system:node:"


def _usages_error(usages: Collection[str], purpose: str) -> str:
    required = sorted(("digital signature", "key encipherment", purpose))
    if set(usages) in (set(required), {"digital signature", purpose}):
        return ""
    return f"usages did not match [{' '.join(required)}]"


def _subject(request: CertificateSigningRequest, attribute: str) -> list[str]:
    from cryptography.x509.oid import NameOID

    oid = {"O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME}[attribute]
    return [str(name.value) for name in request.subject.get_attributes_for_oid(oid)]
