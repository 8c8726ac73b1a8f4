"""The strategy of `pods/ephemeralcontainers`.

Upstream: pkg/registry/core/pod/strategy.go, podEphemeralContainersStrategy.
"""

from __future__ import annotations

from tetrapod.core.podspec.features import drop_disabled
from tetrapod.core.v1.pods import validation
from tetrapod.core.v1.pods.strategy import PodStrategy, keep_metadata
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object


class EphemeralContainersStrategy(PodStrategy):
    """The strategy of `pods/ephemeralcontainers`. Changes of anything but spec.ephemeralContainers are ignored."""

    has_status = False
    tabular = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        containers = (new.get("spec") or {}).get("ephemeralContainers")
        new["spec"] = {k: v for k, v in (old.get("spec") or {}).items() if k != "ephemeralContainers"}
        if containers:
            new["spec"]["ephemeralContainers"] = containers
        drop_disabled(new["spec"], old.get("spec") or {})
        new["status"] = old.get("status", {})
        keep_metadata(new, old)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validation.validate_ephemeral_update(new, old)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]
