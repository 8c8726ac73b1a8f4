"""WebhookAdmissionConfiguration: the client credentials for webhooks.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/config/kubeconfig.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.admission.static_manifests import absolute_path, reject_manifests
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import kind, string
from tetrapod.generic.webhook.credentials_by_host import CredentialsByHost

KIND: Final = "WebhookAdmissionConfiguration"


def read_credentials(data: bytes) -> CredentialsByHost | None:
    """Return the credentials in a WebhookAdmissionConfiguration (JSON or YAML), or None if it names no kubeconfig.

    Raises:
        ValueError: the configuration or the kubeconfig is invalid; with upstream's text.
    """
    shape = kind(f"v1.{KIND}", kubeConfigFile=string(), staticManifestsDir=string())
    config = load(data, {("apiserver.config.k8s.io/v1", KIND): shape})
    path = absolute_path(config, "kubeConfigFile")
    reject_manifests(config)
    return CredentialsByHost(path) if path else None
