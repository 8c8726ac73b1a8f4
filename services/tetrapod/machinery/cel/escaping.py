"""Names of fields as identifiers of CEL, and back. Upstream: k8s.io/apiserver/pkg/cel/escaping.go."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from tetrapod.machinery.cel.reserved import RESERVED

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]+", re.ASCII)
_ESCAPED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPED: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """None for a name that no expression can reach."""
    if not name or name[0] in "0123456789" or not _PLAIN.fullmatch(name):
        return None
    if name in RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[-./]", lambda match: _ESCAPED[match[0]], name)


@lru_cache(maxsize=4096)
def unescape(name: str) -> str | None:
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
