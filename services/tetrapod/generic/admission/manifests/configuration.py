"""The field `staticManifestsDir` in the configurations of webhook and policy plugins.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/manifest/validation.go, plugin/policy/config/config.go
"""

from __future__ import annotations

import os
import stat
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.configuration.files import file_error_text
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import kind, string
from tetrapod.machinery import field
from tetrapod.machinery.gvk import Object

GATE: Final = "ManifestBasedAdmissionControlConfig"
_FIELD: Final = "staticManifestsDir"


def manifests_directory(config: Object) -> str:
    """Return the directory of manifest files (`staticManifestsDir`) in a plugin's configuration, "" if it is unset.

    Raises:
        ValueError: the feature gate ManifestBasedAdmissionControlConfig is disabled, the path is relative, or there is
            no readable directory at the path; with upstream's text.
    """
    path: str = config.get(_FIELD) or ""
    if not path:
        return ""
    if not feature_gates.enabled(GATE):
        raise ValueError(str(field.forbidden(_FIELD, f"{_FIELD} requires the {GATE} feature gate to be enabled")))
    absolute_path(config, _FIELD)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        text = f"unable to read: {file_error_text('stat', path, error)}"
        raise ValueError(str(field.invalid(_FIELD, path, text))) from None
    if not stat.S_ISDIR(mode):
        raise ValueError(str(field.invalid(_FIELD, path, "must be a directory")))
    return path


def absolute_path(config: Object, name: str) -> str:
    """Return the path in the field `name` of a plugin's configuration, "" if it is unset.

    Raises:
        ValueError: the path is relative; with upstream's text.
    """
    path: str = config.get(name) or ""
    if path and not path.startswith("/"):
        raise ValueError(str(field.invalid(name, path, "must be an absolute file path")))
    return path


def policy_manifests_directory(data: bytes, plugin: str) -> str:
    """Return the directory in the configuration of a policy plugin, "" if it names none.

    Args:
        data: the configuration as JSON or YAML.
        plugin: the name of the plugin.

    Raises:
        ValueError: the configuration cannot be decoded, or the directory is invalid.
    """
    name = f"{plugin}Configuration"
    return manifests_directory(
        load(data, {("apiserver.config.k8s.io/v1", name): kind(f"v1.{name}", staticManifestsDir=string())})
    )
