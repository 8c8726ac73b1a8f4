"""The releases in which upstream introduced, deprecated and removed its built-in kinds (tools/generate_lifecycles.py).

Upstream: k8s.io/api/*/*/zz_generated.prerelease-lifecycle.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

Release = tuple[int, int]


class Lifecycle(NamedTuple):
    """The lifecycle of a kind in one group-version. Releases are major and minor version; None if unknown.

    Attributes:
        introduced: the first release that serves it.
        deprecated: the first release in which it is deprecated.
        removed: the first release that no longer serves it.
        replacement: group-version and kind that replace it, such as "resource.k8s.io/v1 DeviceClass"; "" for none.
    """

    introduced: Release | None
    deprecated: Release | None
    removed: Release | None
    replacement: str


_NONE = Lifecycle(None, None, None, "")


def lifecycle(api_version: str, kind: str) -> Lifecycle:
    """Return the lifecycle of a kind. If upstream declares none, its releases are None."""
    return _lifecycles().get((api_version, kind), _NONE)


def deprecation_warning(api_version: str, kind: str, current: Release) -> str:
    """Return the text of the Warning header for a kind that is deprecated in the release `current`, else "".

    Upstream: k8s.io/apiserver/pkg/endpoints/deprecation/deprecation.go, WarningMessage.
    """
    releases = lifecycle(api_version, kind)
    if releases.deprecated is None or releases.deprecated > current:
        return ""
    text = f"{api_version} {kind} is deprecated in v{_shown(releases.deprecated)}+"
    if releases.removed is not None:
        text += f", unavailable in v{_shown(releases.removed)}+"
    return f"{text}; use {releases.replacement}" if releases.replacement else text


def _shown(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


@cache
def _lifecycles() -> Mapping[tuple[str, str], Lifecycle]:
    return dict(_read())


def forget_lifecycles() -> None:
    """Drop the lifecycles that were read from data/lifecycles.txt. Called once all definitions are built."""
    _lifecycles.cache_clear()


def _read() -> Iterator[tuple[tuple[str, str], Lifecycle]]:
    for line in files(__package__).joinpath("data/lifecycles.txt").read_text("utf-8").splitlines():
        api_version, kind, introduced, deprecated, removed, replacement = line.split()
        group_version, _, other_kind = replacement.rpartition("/")
        yield (
            (api_version, kind),
            Lifecycle(
                _release(introduced),
                _release(deprecated),
                _release(removed),
                f"{group_version} {other_kind}" if other_kind != "-" else "",
            ),
        )


def _release(text: str) -> Release | None:
    if text == "-":
        return None
    major, minor = text.split(".")
    return int(major), int(minor)
