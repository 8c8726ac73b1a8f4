"""What compiling and evaluating CEL can raise. The texts are upstream's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tetrapod.machinery.cel.types import CelType

COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"


class CelError(Exception):
    """The base of all below."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint about an expression. `line` begins at 1, `column` at 0; the message has no place in it."""

    line: int
    column: int
    message: str
    kind: str = "ERROR"


class CompileError(CelError):
    """`str()` is cel-go's text of all issues, to be put behind a caller's own words such as `compilation failed: `:

    ERROR: <input>:1:5: undefined field 'x'
     | self.x
     | ....^

    `output_type` is there where the expression is right, but a constant part of it fails: callers tell of a wrong type first.
    """

    def __init__(self, issues: Sequence[Issue], text: str, output_type: CelType | None = None) -> None:
        super().__init__(text)
        self.issues = tuple(issues)
        self.output_type = output_type

    @property
    def full(self) -> str:
        """With upstream's words before it."""
        return f"{'program instantiation' if self.output_type else 'compilation'} failed: {self}"


class EvaluationError(CelError):
    """An error value, as `no such key: x` or `division by zero`; absorbed by `||`, `&&` like upstream's."""


class CostLimitExceeded(CelError):
    """One evaluation went over its limit (`actual cost limit exceeded`); never absorbed."""

    def __init__(self) -> None:
        super().__init__(COST_EXCEEDED)


class InternalError(CelError):
    """What upstream's evaluation panics at; it tells of that as an error. Never absorbed."""

    def __init__(self, text: str) -> None:
        super().__init__(f"internal error: {text}")


class Interrupt(CelError):
    """Raised by a binding (an authorizer that must ask somebody first) to leave an evaluation at once; never absorbed.

    Evaluation has no side effects: the caller gets what was asked for and evaluates once more.
    """
