"""Warnings about volumes of pods: deprecated sources and overlapping paths.

Upstream: pkg/api/pod/warnings.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tetrapod.generic.filters.warnings import ENOUGH
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_SOURCES: Final = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_CERTIFICATE_PATHS: Final = (
    ("certificateChainPath", "chain"),
    ("keyPath", "key"),
    ("credentialBundlePath", "credential bundle"),
)
_Path = tuple[str | None, str]
"""The path of a file in a volume and a description of its source. The path is None for a projected source without any
field.
"""


def deprecated_source(holder: Object, path: str) -> list[str]:
    """Return warnings about deprecated volume sources in a pod's volume or the spec of a persistent volume.

    Args:
        holder: the volume, or the spec of the persistent volume.
        path: its field path, for the warnings.
    """
    return [f"{path}.{name}: {text}" for key, (name, text) in _SOURCES.items() if holder.get(key) is not None]


def fractional(value: Any, path: str) -> list[str]:
    """Return a warning if a quantity of bytes is not an integer, else [].

    Args:
        value: the quantity; None if it is not set, for which the result is [].
        path: the field path of the quantity, for the warning.
    """
    if value is None:
        return []
    amount = Quantity.of(value)
    if amount.milli_value % 1000 == 0:
        return []
    return [f"{path}: fractional byte value {go_quote(str(amount))} is invalid, must be an integer"]


def overlapping_paths(volumes: list[Object]) -> list[str]:
    """Return warnings about files of the same volume whose paths conflict, and about empty projected sources.

    The paths of two files conflict if they are equal, or if one file would have to be a directory of the other. The
    search ends after `ENOUGH` warnings, more than the headers of a response can carry.
    """
    out: list[str] = []
    for volume in volumes:
        name = go_quote(volume.get("name") or "")
        described, paths = _paths(volume)
        overlaps = _Overlaps([path for path, _ in paths if path])
        earlier: dict[str, list[int]] = defaultdict(list)
        for i, (path, source) in enumerate(paths):
            if path is None:
                out.append(f"volume {name} ({described}) has no sources provided")
            if not path:
                continue
            for j in sorted(j for other in overlaps.of(path) for j in earlier.get(other, ())):
                other, other_source = paths[j]
                body = f"{go_quote(path)}{source} with {go_quote(other or '')}{other_source}"
                out.append(f"volume {name} ({described}): overlapping paths: {body}")
                if len(out) >= ENOUGH:
                    return out
            earlier[path].append(i)
    return out


class _Overlaps:
    """An index of paths that finds the directories above a path and the paths below it without visiting all paths.

    There may be 100,000 paths.

    Args:
        paths: the paths to index; duplicates are ignored.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        # the paths below a path follow it directly
        self._ordered = sorted(set(paths), key=lambda path: path.replace("/", "\0"))
        self._place = {path: index for index, path in enumerate(self._ordered)}
        self._above: list[int] = []
        """For each path, the index of the nearest path above it, or -1."""
        for index, path in enumerate(self._ordered):
            above = index - 1
            while above >= 0 and not path.startswith(f"{self._ordered[above]}/"):
                above = self._above[above]
            self._above.append(above)

    def of(self, path: str) -> Iterator[str]:
        """Yield the indexed paths that are directories above `path`, then `path` itself, then those below it.

        Args:
            path: one of the indexed paths.
        """
        index = self._place[path]
        above = self._above[index]
        while above >= 0:
            yield self._ordered[above]
            above = self._above[above]
        yield path
        for below in range(index + 1, len(self._ordered)):
            if not self._ordered[below].startswith(f"{path}/"):
                return
            yield self._ordered[below]


def _paths(volume: Object) -> tuple[str, list[_Path]]:
    """Return a description of a volume such as 'Secret "a"', and its files.

    Returns:
        The description, and a pair for each file: its path (None for an empty projected source) and a description of
            its source.
    """
    if item_source := volume.get("configMap"):
        return f"ConfigMap {go_quote(item_source.get('name') or '')}", _items(item_source, "")
    if item_source := volume.get("secret"):
        return f"Secret {go_quote(item_source.get('secretName') or '')}", _items(item_source, "")
    if item_source := volume.get("downwardAPI"):
        return "DownwardAPI", _items(item_source, "")
    sources = (volume.get("projected") or {}).get("sources") or ()
    return "Projected", [path for source in sources for path in _projected(source)]


def _projected(source: Object) -> list[_Path]:
    if all(value is None for value in source.values()):
        return [(None, "")]
    if item_source := source.get("configMap"):
        return _items(item_source, f" (ConfigMap {go_quote(item_source.get('name') or '')})")
    if item_source := source.get("secret"):
        return _items(item_source, f" (Secret {go_quote(item_source.get('name') or '')})")
    if item_source := source.get("downwardAPI"):
        return _items(item_source, " (DownwardAPI)")
    if token := source.get("serviceAccountToken"):
        return [_path(token.get("path"), " (ServiceAccountToken)")]
    if bundle := source.get("clusterTrustBundle"):
        bundle_name = bundle.get("name") if bundle.get("name") is not None else bundle.get("signerName")
        return [_path(bundle.get("path"), f" (ClusterTrustBundle {go_quote(bundle_name or '')})")]
    certificate = source.get("podCertificate") or {}
    return [
        _path(certificate[key], f" (PodCertificate {file_kind})")
        for key, file_kind in _CERTIFICATE_PATHS
        if certificate.get(key)
    ]


def _items(bag: Object, source: str) -> list[_Path]:
    return [_path(item.get("path"), source) for item in bag.get("items") or ()]


def _path(path: str | None, source: str) -> _Path:
    return (path or "").rstrip("/"), source
