"""`staticManifestsDir`, which configurations of webhooks' and policies' plugins may name (upstream: pkg/admission/plugin/manifest)."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.shapes import kind, string
from tetrapod.machinery import field
from tetrapod.machinery.gvk import Object

_FIELD: Final = "staticManifestsDir"


def refuse(config: Object) -> None:
    """Policies and webhooks come from the API alone: a server without those that a directory has would let through what it must not.

    Raises:
        ValueError
    """
    if absolute_path(config, _FIELD):
        raise ValueError(str(field.forbidden(_FIELD, "Tetrapod has policies and webhooks from the API alone")))


def absolute_path(config: Object, name: str) -> str:
    """What a field names; "" where it names nothing.

    Raises:
        ValueError: it is relative.
    """
    path: str = config.get(name) or ""
    if path and not path.startswith("/"):
        raise ValueError(str(field.invalid(name, path, "must be an absolute file path")))
    return path


def check_policy_configuration(data: bytes, plugin: str) -> None:
    """Of a plugin for policies, whose configuration says nothing else.

    Raises:
        ValueError: with upstream's text.
    """
    name = f"{plugin}Configuration"
    refuse(load(data, {("apiserver.config.k8s.io/v1", name): kind(f"v1.{name}", staticManifestsDir=string())}))
