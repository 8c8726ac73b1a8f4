"""Parsing of resourceVersion.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/api_object_versioner.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.golang.integers import parse_uint
from tetrapod.machinery.golang.quoting import go_quote

LARGEST: Final = (1 << 64) - 1


def parse_resource_version(text: str) -> int:
    """Return a resource version as a number; "" is 0.

    Raises:
        ValueError: the text is not an unsigned 64-bit integer; with upstream's text.
    """
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise ValueError(f"resourceVersion: Invalid value: {go_quote(text)}: {error}") from None
