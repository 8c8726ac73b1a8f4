"""WebhookAdmissionConfiguration: the client credentials for webhooks, and the directory of webhooks in manifest files.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/config/kubeconfig.go
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tetrapod.generic.admission.manifests.configuration import absolute_path, manifests_directory
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import kind, string
from tetrapod.generic.webhook.credentials_by_host import CredentialsByHost

KIND: Final = "WebhookAdmissionConfiguration"


class WebhookConfiguration(NamedTuple):
    """The configuration of a webhook plugin.

    Attributes:
        credentials: the client credentials for webhooks; None if no kubeconfig is configured.
        manifests: the directory of manifest files; "" if none is configured.
    """

    credentials: CredentialsByHost | None = None
    manifests: str = ""


def read_webhook_configuration(data: bytes) -> WebhookConfiguration:
    """Return the configuration in a WebhookAdmissionConfiguration (JSON or YAML).

    Raises:
        ValueError: the configuration, the kubeconfig or the directory is invalid; with upstream's text.
    """
    shape = kind(f"v1.{KIND}", kubeConfigFile=string(), staticManifestsDir=string())
    config = load(data, {("apiserver.config.k8s.io/v1", KIND): shape})
    path = absolute_path(config, "kubeConfigFile")
    manifests = manifests_directory(config)
    return WebhookConfiguration(CredentialsByHost(path) if path else None, manifests)
