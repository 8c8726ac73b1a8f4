"""The warning that a deprecated version answers with (upstream: defaultDeprecationWarning of customresource_handler.go)."""

from __future__ import annotations

from collections.abc import Iterable

from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.versions import compare, priority_key


def deprecation_warnings(group: str, kind: str, versions: Iterable[ServedVersion]) -> dict[str, str]:
    declared = list(versions)
    return {v.name: _warning(v, group, kind, declared) for v in declared if v.deprecated}


def _warning(version: ServedVersion, group: str, kind: str, declared: list[ServedVersion]) -> str:
    if version.deprecation_warning is not None:
        return version.deprecation_warning
    text = f"{group}/{version.name} {kind} is deprecated"
    better = [v.name for v in declared if v.served and not v.deprecated and compare(v.name, version.name) > 0]
    return f"{text}; use {group}/{min(better, key=priority_key)} {kind}" if better else text
