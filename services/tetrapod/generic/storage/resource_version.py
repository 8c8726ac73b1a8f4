"""Reading resourceVersion as upstream does (k8s.io/apiserver/pkg/storage/api_object_versioner.go)."""

from __future__ import annotations

LARGEST = (1 << 64) - 1


def parse_resource_version(text: str) -> int:
    """ "" is 0. Raises ValueError with upstream's text."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    if (version := int(text)) > LARGEST:
        raise ValueError(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": value out of range')
    return version
