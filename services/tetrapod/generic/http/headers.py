"""Response headers that many handlers send."""

from __future__ import annotations

from typing import Final

TEXT_TYPE: Final = (b"content-type", b"text/plain; charset=utf-8")
JSON_TYPE: Final = (b"content-type", b"application/json")
NO_CACHE: Final = (b"cache-control", b"no-cache, private")
NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
