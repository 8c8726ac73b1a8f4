"""The errors of compiling and evaluating CEL. Their texts are upstream's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tetrapod.machinery.cel.types import CelType

COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"


class CelError(Exception):
    """The base class of the errors of compilation and evaluation."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One error of an expression. `line` begins at 1, `column` at 0; the message has no place in it."""

    line: int
    column: int
    message: str
    kind: str = "ERROR"


class CompileError(CelError):
    """An expression that does not compile.

    `str()` is cel-go's text of all issues, without a prefix such as `compilation failed: `:

        ERROR: <input>:1:5: undefined field 'x' | self.x | ....^

    `output_type` is set if the expression is valid but a constant part of it fails. Callers report a wrong type before
    such an error.
    """

    def __init__(self, issues: Sequence[Issue], text: str, output_type: CelType | None = None) -> None:
        super().__init__(text)
        self.issues = tuple(issues)
        self.output_type = output_type

    @property
    def full(self) -> str:
        """Return the text with upstream's prefix."""
        return f"{'program instantiation' if self.output_type else 'compilation'} failed: {self}"


class EvaluationError(CelError):
    """An error value, such as `no such key: x` or `division by zero`. As upstream, `||` and `&&` absorb it."""


class CostLimitExceeded(CelError):
    """An evaluation exceeded its cost limit. It is never absorbed."""

    def __init__(self) -> None:
        super().__init__(COST_EXCEEDED)


class InternalError(CelError):
    """An evaluation in which upstream's code panics; upstream reports the panic as an error. It is never absorbed."""

    def __init__(self, text: str) -> None:
        super().__init__(f"internal error: {text}")


class Interrupt(CelError):
    """Raised by a binding to leave an evaluation at once, for example by an authorizer that needs I/O.

    It is never absorbed.

    Evaluation has no side effects: the caller performs the I/O and then evaluates again.
    """
