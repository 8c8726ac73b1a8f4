"""Boolean values as Go's strconv package and upstream's conversion of query parameters parse them."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.golang.quoting import go_quote

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def parse_bool(text: str) -> bool:
    """Parse a boolean like Go's strconv.ParseBool.

    Raises:
        ValueError: the text is not one of the spellings that Go accepts; the message is Go's.
    """
    if text not in _TRUE | _FALSE:
        raise ValueError(f"strconv.ParseBool: parsing {go_quote(text)}: invalid syntax")
    return text in _TRUE


def query_bool(text: str) -> bool:
    """Return whether a query parameter is true: everything except "false" (in any case) and "0", even "".

    Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/conversion.go, Convert_Slice_string_To_bool
    """
    return text != "0" and text.lower() != "false"
