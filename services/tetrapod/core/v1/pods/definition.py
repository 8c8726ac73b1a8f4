"""The resource definition of pods."""

from __future__ import annotations

from collections.abc import Mapping

from tetrapod.core.v1.pods.strategy import PodStatusStrategy, PodStrategy
from tetrapod.core.v1.pods.table import TABLE
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


def definition(subresources: Mapping[str, Rest | Strategy]) -> ResourceDefinition:
    """Return the resource definition of pods: versions, strategy, subresources and columns.

    Args:
        subresources: the implementations of all subresources except status, by path such as "pods/eviction".
    """
    strategy = PodStrategy()
    paths = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize")
    return builtin(
        "",
        "pods",
        strategy,
        table=TABLE,
        subresources={**{path: subresources[f"pods/{path}"] for path in paths}, "status": PodStatusStrategy(strategy)},
    )
