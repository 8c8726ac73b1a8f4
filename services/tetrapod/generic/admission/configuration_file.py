"""Reads the AdmissionConfiguration of --admission-control-config-file.

A legacy file, from before AdmissionConfiguration, is the configuration of the two plugins that had one then.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/config.go
"""

from __future__ import annotations

import os
from typing import Any, Final

import orjson

from tetrapod.generic.admission.configuration import PluginConfiguration, Unconfigurable
from tetrapod.generic.configuration.files import read
from tetrapod.generic.configuration.loading import Kinds, NotRegistered, load
from tetrapod.generic.configuration.schemas import kind, list_of, pointer, raw, string, struct
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import yaml
from tetrapod.machinery.serializer.errors import DecodeError

KIND: Final = "AdmissionConfiguration"
_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
_LEGACY: Final = {"ImagePolicyWebhook": "imagePolicy", "PodNodeSelector": "podNodeSelectorPluginConfig"}


def read_configuration(path: str) -> PluginConfiguration:
    """Read the file of --admission-control-config-file, and return the configurations of the plugins.

    A file in the format that preceded AdmissionConfiguration (with `imagePolicy` or `podNodeSelectorPluginConfig`) is
    passed as it is to ImagePolicyWebhook and PodNodeSelector.

    Raises:
        Unconfigurable: the file cannot be read or decoded; with upstream's text.
    """
    try:
        data = read(path)
    except ValueError as error:
        raise _unreadable(f'unable to read admission control configuration from "{path}" [{error}]') from None
    try:
        config = load(data, _kinds())
    except NotRegistered as error:
        return PluginConfiguration(paths=_legacy(data, path, error))
    except ValueError as error:
        raise _unreadable(str(error)) from None
    inline: dict[str, bytes] = {}
    paths: dict[str, str] = {}
    for plugin in reversed(config.get("plugins") or ()):  # if a plugin is listed several times, the first entry counts
        name = plugin.get("name") or ""
        inline.pop(name, None)
        paths.pop(name, None)
        if plugin.get("configuration") is not None:
            inline[name] = orjson.dumps(plugin["configuration"], option=orjson.OPT_SORT_KEYS)
        elif plugin.get("path"):
            paths[name] = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(path)), plugin["path"]))
    return PluginConfiguration(inline, paths)


def _legacy(data: bytes, path: str, error: NotRegistered) -> dict[str, str]:
    try:
        legacy: Any = yaml.decode(data).obj
    except DecodeError:
        legacy = None
    if not isinstance(legacy, dict) or legacy.keys().isdisjoint(_LEGACY.values()):
        raise _unreadable(str(error))
    return dict.fromkeys(_LEGACY, path)


def _unreadable(reason: str) -> Unconfigurable:
    return Unconfigurable(f"failed to read plugin config: {reason}")


def _kinds() -> Kinds:
    anything = pointer(raw())
    shape: dict[tuple[str, str], SchemaNode] = {}
    for api_version in _VERSIONS:
        version = api_version.rpartition("/")[2]
        plugin = struct(f"{version}.AdmissionPluginConfiguration", name=string(), path=string(), configuration=anything)
        shape[api_version, KIND] = kind(f"{version}.{KIND}", plugins=list_of(plugin))
    return shape
