"""Reading resourceVersion as upstream does (k8s.io/apiserver/pkg/storage/api_object_versioner.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.field import go_quote

LARGEST: Final = (1 << 64) - 1
_DIGITS: Final = len(str(LARGEST))


def parse_resource_version(text: str) -> int:
    """ "" is 0. Raises ValueError with upstream's text."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise _invalid(text, "invalid syntax")
    digits = text.lstrip("0") or "0"
    if len(digits) > _DIGITS or (version := int(digits)) > LARGEST:
        raise _invalid(text, "value out of range")
    return version


def _invalid(text: str, why: str) -> ValueError:
    quoted = go_quote(text)
    return ValueError(f"resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {why}")
