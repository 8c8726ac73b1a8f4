"""Words that no identifier of an expression may be (cel-go parser/parser.go; kept apart, since validation wants no more of CEL)."""

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
