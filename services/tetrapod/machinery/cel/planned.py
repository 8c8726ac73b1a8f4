"""What parts of an expression are planned to: constants, attributes, and functions of a frame.

Upstream: cel-go interpreter/interpretable.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tetrapod.machinery.cel.attributes import Attribute, Conditional
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.frame import Eval, Frame


class InstantiationError(ValueError):
    """A constant part that is an error already, such as `int('x')`."""


class Const(NamedTuple):
    """A part whose value is known: it costs nothing."""

    value: Any


Planned = Const | Attribute | Conditional | Callable[[Frame], Any]


def finished(planned: Planned) -> Eval:
    """The part as a function, with nothing to be added to it."""
    if isinstance(planned, Const):
        value = planned.value
        return lambda f: value
    return planned.resolver(1) if isinstance(planned, (Attribute, Conditional)) else planned


def as_attribute(planned: Planned) -> Attribute | Conditional:
    """The part as something that fields and indexes can be added to."""
    return planned if isinstance(planned, (Attribute, Conditional)) else Attribute(finished(planned))


def folded(make: Callable[[], Any]) -> Any:
    """What a constant part comes to. Raises InstantiationError."""
    try:
        return make()
    except EvaluationError as error:
        raise InstantiationError(str(error)) from None
