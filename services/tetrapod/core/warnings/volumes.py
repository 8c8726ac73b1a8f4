"""Volumes, PersistentVolumes and claims (upstream: pkg/api/{pod,persistentvolume,persistentvolumeclaim})."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tetrapod.core.warnings.labels import node_selector_term
from tetrapod.generic.filters.warnings import ENOUGH
from tetrapod.machinery.field import go_quote
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
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_CERTIFICATE_PATHS: Final = (
    ("certificateChainPath", "chain"),
    ("keyPath", "key"),
    ("credentialBundlePath", "credential bundle"),
)
_Path = tuple[str | None, str]
"""A file of a volume and where it comes from; no path where a source has nothing."""
_RECYCLE: Final = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."


def deprecated_source(holder: Object, path: str) -> list[str]:
    return [f"{path}.{name}: {text}" for key, (name, text) in _SOURCES.items() if holder.get(key) is not None]


def fractional(value: Any, path: str) -> list[str]:
    """Bytes come whole."""
    if value is None:
        return []
    amount = Quantity.of(value)
    if amount.milli_value % 1000 == 0:
        return []
    return [f"{path}: fractional byte value {go_quote(str(amount))} is invalid, must be an integer"]


def claim_warnings(claim: Object, old: Object | None) -> list[str]:
    out: list[str] = []
    if _BETA_CLASS in (claim["metadata"].get("annotations") or {}):
        out.append(f'metadata.annotations[{_BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead')
    return out + claim_spec_warnings(claim.get("spec") or {}, "spec")


def claim_spec_warnings(spec: Object, path: str) -> list[str]:
    """Also those of StatefulSets' claim templates."""
    resources = spec.get("resources") or {}
    out: list[str] = []
    for part in ("requests", "limits"):
        out += fractional((resources.get(part) or {}).get("storage"), f"{path}.resources.{part}[storage]")
    return out


def volume_warnings(volume: Object, old: Object | None) -> list[str]:
    spec, notes = volume.get("spec") or {}, volume["metadata"].get("annotations") or {}
    out: list[str] = []
    if _BETA_CLASS in notes:
        out.append(f'metadata.annotations[{_BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead')
    if _MOUNT_OPTIONS in notes:
        out.append(f'metadata.annotations[{_MOUNT_OPTIONS}]: deprecated since v1.31; use "mountOptions" attribute instead')
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        out.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
    for i, term in enumerate(((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()):
        out += node_selector_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]", values=False)
    return out + deprecated_source(spec, "spec")


def overlapping_paths(volumes: list[Object]) -> list[str]:
    """Files of one volume of which one would have to be a directory of another."""
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
    """Which of some paths are the same as another, or lie above or below it. Only those are looked at: there may be a hundred thousand."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._ordered = sorted(set(paths), key=lambda path: path.replace("/", "\0"))  # what lies below a path follows it
        self._place = {path: place for place, path in enumerate(self._ordered)}
        self._above: list[int] = []
        """The place of the nearest path that each lies below; -1 where there is none."""
        for place, path in enumerate(self._ordered):
            above = place - 1
            while above >= 0 and not path.startswith(f"{self._ordered[above]}/"):
                above = self._above[above]
            self._above.append(above)

    def of(self, path: str) -> Iterator[str]:
        """Itself too."""
        place = self._place[path]
        above = self._above[place]
        while above >= 0:
            yield self._ordered[above]
            above = self._above[above]
        yield path
        for below in range(place + 1, len(self._ordered)):
            if not self._ordered[below].startswith(f"{path}/"):
                return
            yield self._ordered[below]


def _paths(volume: Object) -> tuple[str, list[_Path]]:
    """What the volume is, and its files with their sources, where it has several."""
    if bag := volume.get("configMap"):
        return f"ConfigMap {go_quote(bag.get('name') or '')}", _items(bag, "")
    if bag := volume.get("secret"):
        return f"Secret {go_quote(bag.get('secretName') or '')}", _items(bag, "")
    if bag := volume.get("downwardAPI"):
        return "DownwardAPI", _items(bag, "")
    sources = (volume.get("projected") or {}).get("sources") or ()
    return "Projected", [path for source in sources for path in _projected(source)]


def _projected(source: Object) -> list[_Path]:
    if all(value is None for value in source.values()):
        return [(None, "")]
    if bag := source.get("configMap"):
        return _items(bag, f" (ConfigMap {go_quote(bag.get('name') or '')})")
    if bag := source.get("secret"):
        return _items(bag, f" (Secret {go_quote(bag.get('name') or '')})")
    if bag := source.get("downwardAPI"):
        return _items(bag, " (DownwardAPI)")
    if token := source.get("serviceAccountToken"):
        return [_path(token.get("path"), " (ServiceAccountToken)")]
    if bundle := source.get("clusterTrustBundle"):
        named = bundle.get("name") if bundle.get("name") is not None else bundle.get("signerName")
        return [_path(bundle.get("path"), f" (ClusterTrustBundle {go_quote(named or '')})")]
    certificate = source.get("podCertificate") or {}
    return [_path(certificate[key], f" (PodCertificate {what})") for key, what in _CERTIFICATE_PATHS if certificate.get(key)]


def _items(bag: Object, source: str) -> list[_Path]:
    return [_path(item.get("path"), source) for item in bag.get("items") or ()]


def _path(path: str | None, source: str) -> _Path:
    return (path or "").rstrip("/"), source
