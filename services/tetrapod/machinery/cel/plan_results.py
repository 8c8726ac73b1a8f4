"""The results of planning a node: constants, attributes, and evaluation functions.

Upstream: cel-go interpreter/interpretable.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tetrapod.machinery.cel.attributes import Attribute, Conditional
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.frame import Eval, Frame


class InstantiationError(ValueError):
    """The error for a constant part of an expression whose evaluation fails, such as `int('x')`."""


class Const(NamedTuple):
    """A node whose value is known before evaluation; it costs nothing."""

    value: Any


Planned = Const | Attribute | Conditional | Callable[[Frame], Any]


def finished(planned: Planned) -> Eval:
    """Return the evaluation function of a planned node, which evaluates it given a `Frame`.

    `planned` is a constant, an attribute, a conditional, or already such a function. Unlike for an attribute, no fields
    and indexes can be added to the result.
    """
    if isinstance(planned, Const):
        value = planned.value
        return lambda f: value
    return planned.resolver(1) if isinstance(planned, (Attribute, Conditional)) else planned


def as_attribute(planned: Planned) -> Attribute | Conditional:
    """Return a planned node as an attribute, to which fields and indexes can be added by `add`.

    An attribute or a conditional is returned itself; for any other node, the attribute has it as its operand.
    """
    return planned if isinstance(planned, (Attribute, Conditional)) else Attribute(finished(planned))


def folded(make: Callable[[], Any]) -> Any:
    """Return the value that `make` computes for a constant part of an expression, when the expression is planned.

    Raises:
        InstantiationError: `make` raised an `EvaluationError`.
    """
    try:
        return make()
    except EvaluationError as error:
        raise InstantiationError(str(error)) from None
