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
    """One error of an expression, at a line (from 1) and column (from 0). The message does not contain the position.

    Attributes:
        line: the line, or -1 if the position is unknown.
        column: the column in code points, or -1.
        message: the message.
        kind: always "ERROR".
    """

    line: int
    column: int
    message: str
    kind: str = "ERROR"


class CompileError(CelError):
    """The error of an expression that does not compile.

    `str()` is cel-go's text of all issues, without a prefix such as `compilation failed: `:

        ERROR: <input>:1:5: undefined field 'x' | self.x | ....^

    Attributes:
        issues: the errors one by one; () if a constant part of a valid expression fails.
        output_type: the type of the expression if it is valid but a constant part of it fails, otherwise None. Callers
            report a wrong type before such an error.
    """

    def __init__(self, issues: Sequence[Issue], text: str, output_type: CelType | None = None) -> None:
        super().__init__(text)
        self.issues = tuple(issues)
        self.output_type = output_type

    @property
    def full(self) -> str:
        """Return the text with upstream's prefix, such as `compilation failed: `."""
        return f"{'program instantiation' if self.output_type else 'compilation'} failed: {self}"


class EvaluationError(CelError):
    """An error that is the value of an expression, such as `no such key: x`.

    As in upstream, `||` and `&&` may ignore it.
    """


class CostLimitExceeded(CelError):
    """The error for an evaluation that exceeds its cost limit.

    Unlike an `EvaluationError`, `||` and `&&` do not ignore it.
    """

    def __init__(self) -> None:
        super().__init__(COST_EXCEEDED)


class InternalError(CelError):
    """The error for an evaluation in which upstream's code panics, which upstream reports as an error.

    Unlike an `EvaluationError`, `||` and `&&` do not ignore it.
    """

    def __init__(self, text: str) -> None:
        super().__init__(f"internal error: {text}")


class Interrupt(CelError):
    """The exception with which the value of a variable ends an evaluation at once; `||` and `&&` do not ignore it.

    An authorizer raises it if it needs I/O, for example. Evaluation has no side effects: the caller performs the I/O
    and then evaluates again.
    """
