"""The words for texts that are no CEL."""

from __future__ import annotations

from tetrapod.machinery.cel.errors import Issue
from tetrapod.machinery.cel.lexer import LexicalError
from tetrapod.machinery.cel.parser import Parser, SyntaxProblem
from tetrapod.machinery.cel.source import Source

_TERMS = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"


def syntax_issues(expression: str, source: Source) -> list[Issue]:
    try:
        Parser(expression).parse()
    except SyntaxProblem as problem:
        token = problem.token
        return [source.issue(token.at, f"Syntax error: mismatched input '{token.text}' expecting {_TERMS}")]
    except LexicalError as error:
        at = int(str(error))
        return [source.issue(at, f"Syntax error: token recognition error at: '{expression[at]}'")]
    return []
