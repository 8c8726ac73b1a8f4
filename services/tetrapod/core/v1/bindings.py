"""Binding. `pods/binding.py` implements it, because creating a Binding does the same as `pods/binding`."""

from __future__ import annotations

from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


def definition(rest: Rest) -> ResourceDefinition:
    """Return the definition of bindings, which can only be created and are not stored.

    Args:
        rest: the implementation, a `BindingRest`.
    """
    return builtin("", "bindings", Strategy(), rest=rest)
