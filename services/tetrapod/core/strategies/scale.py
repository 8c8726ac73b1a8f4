"""Where a built-in kind keeps what its `/scale` subresource shows."""

from __future__ import annotations

from tetrapod.generic.endpoints.scale import ScalePaths


def scale() -> ScalePaths:
    return ScalePaths(spec_replicas=("spec", "replicas"), status_replicas=("status", "replicas"), selector=("spec", "selector"))
