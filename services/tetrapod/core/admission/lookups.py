"""The check of names that a plugin looks up through the API, as client-go does it. Upstream: client-go/rest, Request.Name."""

from __future__ import annotations

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.names import is_path_segment_name


def name_error(name: str) -> str:
    """Return why client-go would reject the name before it sends a request, or ""."""
    if not name:
        return "resource name may not be empty"
    errors = is_path_segment_name(name)
    return f"invalid resource name {go_quote(name)}: [{' '.join(errors)}]" if errors else ""
