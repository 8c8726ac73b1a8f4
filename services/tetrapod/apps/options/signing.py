"""The flags of the certificate signing controller, with the names and words of kube-controller-manager.

Upstream: cmd/kube-controller-manager/app/options/csrsigningcontroller.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import flag

_ALL = "If specified, no more specific --cluster-signing-* flag may be specified."
_ONE = "If specified, --cluster-signing-{cert,key}-file must not be set."
_CERTIFICATE = "Filename containing a PEM-encoded X509 CA certificate used to issue"
_KEY = "Filename containing a PEM-encoded RSA or ECDSA private key used to sign"


@dataclass(frozen=True, slots=True)
class SigningFlags:
    """The flags that name the CAs of the built-in signers."""

    cert_file: str = flag("cluster-signing-cert-file", "", f"{_CERTIFICATE} cluster-scoped certificates. {_ALL}")
    key_file: str = flag("cluster-signing-key-file", "", f"{_KEY} cluster-scoped certificates. {_ALL}")
    kubelet_serving_cert_file: str = flag(
        "cluster-signing-kubelet-serving-cert-file",
        "",
        f"{_CERTIFICATE} certificates for the kubernetes.io/kubelet-serving signer. {_ONE}",
    )
    kubelet_serving_key_file: str = flag(
        "cluster-signing-kubelet-serving-key-file",
        "",
        f"{_KEY} certificates for the kubernetes.io/kubelet-serving signer. {_ONE}",
    )
    kubelet_client_cert_file: str = flag(
        "cluster-signing-kubelet-client-cert-file",
        "",
        f"{_CERTIFICATE} certificates for the kubernetes.io/kube-apiserver-client-kubelet signer. {_ONE}",
    )
    kubelet_client_key_file: str = flag(
        "cluster-signing-kubelet-client-key-file",
        "",
        f"{_KEY} certificates for the kubernetes.io/kube-apiserver-client-kubelet signer. {_ONE}",
    )
    api_client_cert_file: str = flag(
        "cluster-signing-kube-apiserver-client-cert-file",
        "",
        f"{_CERTIFICATE} certificates for the kubernetes.io/kube-apiserver-client signer. {_ONE}",
    )
    api_client_key_file: str = flag(
        "cluster-signing-kube-apiserver-client-key-file",
        "",
        f"{_KEY} certificates for the kubernetes.io/kube-apiserver-client signer. {_ONE}",
    )
    legacy_cert_file: str = flag(
        "cluster-signing-legacy-unknown-cert-file",
        "",
        f"{_CERTIFICATE} certificates for the kubernetes.io/legacy-unknown signer. {_ONE}",
    )
    legacy_key_file: str = flag(
        "cluster-signing-legacy-unknown-key-file",
        "",
        f"{_KEY} certificates for the kubernetes.io/legacy-unknown signer. {_ONE}",
    )
    duration: float = flag(
        "cluster-signing-duration",
        365 * 24 * 3600.0,
        "The max length of duration signed certificates will be given. Individual CSRs may request shorter certs by "
        "setting spec.expirationSeconds.",
    )
