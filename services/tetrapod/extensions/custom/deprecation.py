"""The warnings for requests to deprecated versions.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, defaultDeprecationWarning.
"""

from __future__ import annotations

from collections.abc import Iterable

from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.version_order import compare, priority_key


def deprecation_warnings(group: str, kind: str, versions: Iterable[ServedVersion]) -> dict[str, str]:
    """Return the warnings of the deprecated versions, by version."""
    declared = list(versions)
    return {v.name: _warning(v, group, kind, declared) for v in declared if v.deprecated}


def _warning(version: ServedVersion, group: str, kind: str, declared: list[ServedVersion]) -> str:
    if version.deprecation_warning is not None:
        return version.deprecation_warning
    text = f"{group}/{version.name} {kind} is deprecated"
    better = [v.name for v in declared if v.served and not v.deprecated and compare(v.name, version.name) > 0]
    return f"{text}; use {group}/{min(better, key=priority_key)} {kind}" if better else text
