"""Several kubeconfig files as one, as kubectl reads those of $KUBECONFIG.

Upstream: k8s.io/client-go/tools/clientcmd/loader.go, ClientConfigLoadingRules.Load
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tetrapod.generic.webhook.kubeconfig import read_config
from tetrapod.machinery.gvk import Object

_KINDS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}
_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields of clusters and users that are relative to their file."""


def merge_kubeconfigs(files: Sequence[str]) -> Object:
    """Return one Config with the content of all files that exist, and absolute paths.

    If several files have an entry of the same name, or a current context, that of the first file counts.

    Raises:
        ValueError: a file cannot be read or decoded, or none exists.
    """
    existing = [file for file in files if Path(file).exists()]
    merged: Object = {**{kind: [] for kind in _KINDS}, "current-context": ""}
    for file in existing or files[:1]:  # the error is that of the first file if none exists
        config, directory = read_config(file), Path(file).absolute().parent
        merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
        for kind, key in _KINDS.items():
            known = {entry.get("name") for entry in merged[kind]}
            for entry in config.get(kind) or ():
                if entry.get("name") not in known:
                    merged[kind].append({**entry, key: _absolute(entry.get(key) or {}, directory)})
                    known.add(entry.get("name"))
    return merged


def _absolute(content: Object, directory: Path) -> Object:
    """Return a cluster, user or context with paths that do not depend on the directory of their file."""
    resolved: Object = {
        name: str(directory / value) if name in _PATHS and value else value for name, value in content.items()
    }
    plugin = resolved.get("exec")
    if plugin and os.sep in (plugin.get("command") or ""):
        resolved["exec"] = {**plugin, "command": str(directory / plugin["command"])}
    return resolved
