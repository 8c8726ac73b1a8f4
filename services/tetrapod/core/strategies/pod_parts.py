"""`pods/ephemeralcontainers` and `pods/resize`: an update of one part of a pod (upstream: core/pod/strategy.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.core.strategies.pods import PodStrategy
from tetrapod.core.validation import pod_resize, pods
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import copy_value
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_SERVER_KEPT: Final = frozenset({"managedFields", "resourceVersion", "generation"})


class EphemeralContainersStrategy(PodStrategy):
    has_status = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        containers = (new.get("spec") or {}).get("ephemeralContainers")
        new["spec"] = {k: v for k, v in (old.get("spec") or {}).items() if k != "ephemeralContainers"}
        if containers:
            new["spec"]["ephemeralContainers"] = containers
        new["status"] = old.get("status", {})
        _keep_metadata(new, old)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return pods.validate_ephemeral_update(new, old)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class ResizeStrategy(PodStrategy):
    has_status = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        wanted = {}
        for kind in ("initContainers", "containers"):
            for container in (new.get("spec") or {}).get(kind) or ():
                wanted[kind, container.get("name")] = container
        spec = dict(old.get("spec") or {})
        if (resources := (new.get("spec") or {}).get("resources")) is not None:
            spec["resources"] = resources
        for kind in ("initContainers", "containers"):
            if spec.get(kind):
                spec[kind] = [_resized(c, wanted.get((kind, c.get("name")))) for c in spec[kind]]
        new["spec"] = spec
        new["status"] = old.get("status", {})
        _keep_metadata(new, old)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return pod_resize.validate_resize(new, old)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


def _resized(container: Object, wanted: Object | None) -> Object:
    if wanted is None:
        return container
    changed = {k: v for k, v in container.items() if k not in ("resources", "resizePolicy")}
    for key in ("resources", "resizePolicy"):
        if wanted.get(key) is not None:
            changed[key] = wanted[key]
    return changed


def _keep_metadata(new: Object, old: Object) -> None:
    """Only the part itself may change: metadata is the stored one, but for who owns what."""
    meta = new["metadata"]
    for key in [k for k in meta if k not in _SERVER_KEPT]:
        del meta[key]
    for key, value in old["metadata"].items():
        if key not in _SERVER_KEPT:
            meta[key] = copy_value(value)
