"""Parsing of whole expressions, with the errors of cel-go.

Upstream: cel-go parser/parser.go, Parser.Parse.
"""

from __future__ import annotations

from tetrapod.machinery.cel.errors import CompileError
from tetrapod.machinery.cel.lexer import LexicalError
from tetrapod.machinery.cel.nodes import Node
from tetrapod.machinery.cel.parser import MAX_DEPTH, MAX_SIZE, Parser, SyntaxProblem, TooDeep
from tetrapod.machinery.cel.source import Source


def parsed(expression: str, source: Source, *, binds: bool = False, core: bool = False) -> Node:
    """Parse an expression and expand its macros.

    Args:
        expression: the text of the expression.
        source: makes the errors with their positions in the text.
        binds: whether the macro `cel.bind` is allowed.
        core: whether the text has only the core syntax, without macros and optional values.

    Raises:
        CompileError: the expression is too long or too deep, or has syntax errors, all of which the text lists.
    """
    if len(expression) > MAX_SIZE:
        text = f"expression code point size exceeds limit: size: {len(expression)}, limit {MAX_SIZE}"
        raise source.error([source.issue(-1, text)])
    parser = None
    try:
        parser = Parser(expression, binds=binds, core=core)
        node = parser.parse()
    except (TooDeep, RecursionError):
        raise too_deep(source) from None
    except (LexicalError, SyntaxProblem):
        from tetrapod.machinery.cel.syntax import syntax_issues

        collected = [] if parser is None else parser.problems
        raise source.error(
            syntax_issues(expression, source, macros=not core) + [source.issue(*problem) for problem in collected]
        ) from None
    if parser.problems:
        raise source.error([source.issue(at, message) for at, message in parser.problems])
    return node


def too_deep(source: Source) -> CompileError:
    """Return, not raise, the error for an expression that is nested too deeply."""
    return source.error([source.issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")])
