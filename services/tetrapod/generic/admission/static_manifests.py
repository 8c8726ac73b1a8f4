"""The field `staticManifestsDir` in the configurations of webhook and policy plugins, which is not supported.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/manifest
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import kind, string
from tetrapod.machinery import field
from tetrapod.machinery.gvk import Object

_FIELD: Final = "staticManifestsDir"


def reject_manifests(config: Object) -> None:
    """Reject a plugin's configuration that sets `staticManifestsDir`.

    Policies and webhooks come only from the API; ignoring the manifests would admit requests that they forbid.

    Raises:
        ValueError: the field is set.
    """
    if absolute_path(config, _FIELD):
        raise ValueError(str(field.forbidden(_FIELD, "Tetrapod has policies and webhooks from the API alone")))


def absolute_path(config: Object, name: str) -> str:
    """Return the path in the field `name` of a plugin's configuration, "" if it is unset.

    Raises:
        ValueError: the path is relative; with upstream's text.
    """
    path: str = config.get(name) or ""
    if path and not path.startswith("/"):
        raise ValueError(str(field.invalid(name, path, "must be an absolute file path")))
    return path


def check_policy_configuration(data: bytes, plugin: str) -> None:
    """Check the configuration of a policy plugin, whose only field is `staticManifestsDir`.

    Args:
        data: the configuration as JSON or YAML.
        plugin: the name of the plugin.

    Raises:
        ValueError: it cannot be decoded, or sets the field.
    """
    name = f"{plugin}Configuration"
    reject_manifests(
        load(data, {("apiserver.config.k8s.io/v1", name): kind(f"v1.{name}", staticManifestsDir=string())})
    )
