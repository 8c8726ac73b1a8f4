"""Escaping of field names as CEL identifiers. Upstream: k8s.io/apiserver/pkg/cel/escaping.go."""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.boundedcache import bounded

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]+", re.ASCII)
_ESCAPED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPED: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


# The reserved words of CEL, which cannot be identifiers. Upstream: cel-go parser/parser.go.
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


@bounded(count=8192, size=2 << 20)
def escape(name: str) -> str | None:
    """Return the CEL identifier of a field name, such as `a__dash__b` for `a-b`.

    The result is None if no expression can refer to the field.
    """
    if not name or name[0] in "0123456789" or not _PLAIN.fullmatch(name):
        return None
    if name in RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[-./]", lambda match: _ESCAPED[match[0]], name)


@bounded(count=8192, size=2 << 20)
def unescape(name: str) -> str | None:
    """Return the field name of a CEL identifier, such as `a-b` for `a__dash__b`.

    The result is None for an invalid escape sequence.
    """
    if "__" not in name:
        return name
    pieces, at = [], 0
    for match in re.finditer(r"__([^_]+)__", name):
        word = match[1]
        if word in _UNESCAPED:
            plain = _UNESCAPED[word]
        elif word in RESERVED and match[0] == name:
            plain = word
        else:
            return None
        pieces += [name[at : match.start()], plain]
        at = match.end()
    return "".join(pieces) + name[at:]
