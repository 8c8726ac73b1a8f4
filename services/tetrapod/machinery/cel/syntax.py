"""The words for texts that are no CEL: those of the ANTLR parser that cel-go uses.

Our own parser only says that a text is wrong. What to call that depends on the rules by which ANTLR goes on after an error, so the text
is then read once more, by ANTLR's runtime over cel-go's grammar (`data/*.interp`, made by ANTLR from cel-go parser/gen/CEL.g4). The
runtime is imported at the first such text. Upstream: cel-go parser/parser.go (SyntaxError, recoveryLimitErrorStrategy).
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.cel.errors import Issue
from tetrapod.machinery.cel.lexer import LexicalError
from tetrapod.machinery.cel.parser import Parser, SyntaxProblem
from tetrapod.machinery.cel.source import Source

_NO_FIELD: Final = re.compile(r"(?:in)?\s*\)")
_OPEN_HAS: Final = re.compile(r"(?<![\w.])has\(\s*([A-Za-z_][\w.?\[\]'\"]*)\.\s*$")
MAX_LENGTH: Final = 2_000
"""Of a text that is read a second time; of a longer one only the first error is told, in simpler words."""


def syntax_issues(expression: str, source: Source) -> list[Issue]:
    if len(expression) > MAX_LENGTH:
        return [_first_issue(expression, source)]
    from tetrapod.machinery.cel.antlr import complaints

    found = complaints(expression)
    if not expression:  # an empty text has no column that could be wrong
        found = [(line, column - 1, message) for line, column, message in found]
    issues = [Issue(line, column, f"Syntax error: {message}") for line, column, message in found] or [_first_issue(expression, source)]
    return sorted(issues + _spoilt_macros(expression, source, found), key=lambda issue: (issue.line, issue.column))


def _spoilt_macros(expression: str, source: Source, found: list[tuple[int, int, str]]) -> list[Issue]:
    """A has() whose argument ends in a field that is none (a reserved word) was expanded nevertheless."""
    lines = expression.split("\n")
    issues = []
    for line, column, message in found:
        before = sum(len(text) + 1 for text in lines[: line - 1]) + column
        spoilt = _OPEN_HAS.search(expression[:before]) if message.startswith("no viable alternative") else None
        if spoilt is not None and _NO_FIELD.match(expression, before):
            issues.append(source.issue(spoilt.start(1), "invalid argument to has() macro"))
    return issues


def _first_issue(expression: str, source: Source) -> Issue:
    try:
        Parser(expression, binds=True).parse()
    except SyntaxProblem as problem:
        token = problem.token
        return source.issue(token.at, f"Syntax error: extraneous input '{token.text}'")
    except LexicalError as error:
        at = int(str(error))
        return source.issue(at, f"Syntax error: token recognition error at: '{expression[at]}'")
    return source.issue(0, "Syntax error")
