"""The field paths behind the `/scale` subresource of built-in kinds."""

from __future__ import annotations

from tetrapod.generic.endpoints.scale import ScalePaths


def scale() -> ScalePaths:
    """Return the paths of replicas and selector in a workload."""
    return ScalePaths(spec_replicas=("spec", "replicas"), status_replicas=("status", "replicas"), selector=("spec", "selector"))
