"""The CAs of the certificate signing controller.

Upstream: cmd/kube-controller-manager/app/{certificates,options/csrsigningcontroller}.go.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from tetrapod.apps.options.signing import SigningFlags
from tetrapod.core.certificates.kubelet_requests import API_CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY
from tetrapod.core.controllers.certificate_requests import SigningKeys
from tetrapod.machinery.error_aggregate import aggregate_errors


def signing_keys(flags: SigningFlags) -> SigningKeys:
    """Return the CAs that the flags name, by signer. Without any, requests are neither approved nor signed.

    Raises:
        click.ClickException: one of the flags of a single signer is given without the other, general and
            specific flags are combined, or a file cannot be read or is malformed.
    """
    specific = {
        KUBELET_SERVING: ("kubelet-serving", flags.kubelet_serving_cert_file, flags.kubelet_serving_key_file),
        KUBELET_CLIENT: ("kube-apiserver-client", flags.kubelet_client_cert_file, flags.kubelet_client_key_file),
        API_CLIENT: ("kube-apiserver", flags.api_client_cert_file, flags.api_client_key_file),
        LEGACY: ("legacy-unknown", flags.legacy_cert_file, flags.legacy_key_file),
    }
    errors = []
    for name, certificate, key in specific.values():
        if bool(certificate) != bool(key):
            given, missing = ("cert", "key") if certificate else ("key", "cert")
            errors.append(f'"cluster-signing-{name}": cannot specify {given} without {missing}')
    chosen = {signer: (cert, key) for signer, (_, cert, key) in specific.items() if cert or key}
    if chosen and (flags.cert_file or flags.key_file):
        errors.append(
            "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time"
        )
    if errors:
        raise click.ClickException(aggregate_errors(errors))
    if flags.cert_file and flags.key_file:
        chosen = dict.fromkeys(specific, (flags.cert_file, flags.key_file))
    files = {signer: (Path(cert), Path(key)) for signer, (cert, key) in chosen.items()}
    keys = SigningKeys(files, timedelta(seconds=flags.duration))
    for signer in files:
        try:
            keys.authority(signer)
        except (OSError, ValueError) as error:
            raise click.ClickException(f"failed to init {signer} certificate controller: {error}") from None
    return keys
