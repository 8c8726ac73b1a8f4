"""Binding. Its implementation is `pods/binding.py`, because a Binding in the path of its namespace does the same."""

from __future__ import annotations

from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


def definition(rest: Rest) -> ResourceDefinition:
    """Return the definition of bindings, which are only created."""
    return builtin("", "bindings", Strategy(), rest=rest)
