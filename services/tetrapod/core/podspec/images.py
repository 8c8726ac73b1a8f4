"""Parsing of container image references, to find the tag.

Upstream: pkg/util/parsers, over github.com/distribution/reference.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.boundedcache import bounded

_DEFAULT_DOMAIN: Final = "docker.io"
_LEGACY_DOMAIN: Final = "index.docker.io"
_PATH_LIMIT: Final = 255
_LONGEST_PATH: Final = 1024
"""Characters beyond which a path with tag and digest is invalid for certain: its parts have 255, 128 and about 140."""
_LONGEST_DOMAIN: Final = 64 * 1024
"""Characters beyond which a registry counts as invalid. Matching one of 3 MB takes 300 ms. Upstream has no limit."""
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}

_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST: Final = r"([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):([0-9A-Fa-f]{32,})"
_reference = re.compile(
    rf"{_DOMAIN}/({_PART}(?:/{_PART})*)(?::(\w[\w.-]{{0,127}}))?(?:@{_DIGEST})?", re.ASCII
).fullmatch
_identifier = re.compile(r"[a-f0-9]{64}").fullmatch


@bounded(count=2048, size=1 << 20, largest=2048)
def tag_of(image: str) -> str:
    """Return the tag of an image.

    The tag is "latest" if the image has neither tag nor digest, and "" if the reference is invalid or has only a
    digest.
    """
    if _identifier(image):
        return ""
    domain, path = _split(image)
    if len(path) > _LONGEST_PATH or len(domain) > _LONGEST_DOMAIN:
        return ""
    match = _reference(f"{domain}/{path}")
    if match is None or len(match[1]) > _PATH_LIMIT:
        return ""
    _, tag, algorithm, encoded = match.groups()
    if algorithm is None:
        return tag or "latest"
    is_valid_digest = len(encoded) == _DIGEST_LENGTHS.get(algorithm) and encoded == encoded.lower()
    return tag or "" if is_valid_digest else ""


def _split(image: str) -> tuple[str, str]:
    """Split an image into the registry, by default "docker.io", and the path with tag and digest.

    The path of an image of Docker Hub without a namespace gets the prefix "library/".
    """
    first, slash, rest = image.partition("/")
    domain, path = _DEFAULT_DOMAIN, image
    if slash and first == _LEGACY_DOMAIN:
        path = rest
    elif slash and (first == "localhost" or "." in first or ":" in first or first.lower() != first):
        domain, path = first, rest
    if domain == _DEFAULT_DOMAIN and "/" not in path:
        path = f"library/{path}"
    return domain, path
