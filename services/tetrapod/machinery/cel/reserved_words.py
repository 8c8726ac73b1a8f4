"""The reserved words of CEL, which cannot be identifiers. Upstream: cel-go parser/parser.go.

A separate module, because the validation of schemas needs nothing else of CEL.
"""

from typing import Final

RESERVED: Final = frozenset(
    (
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)
