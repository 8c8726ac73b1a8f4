"""Names that a plugin looks up through the API, whose client refuses some before it asks (upstream: client-go/rest, Request.Name)."""

from __future__ import annotations

from tetrapod.machinery.field import go_quote
from tetrapod.machinery.names import is_path_segment_name


def name_complaint(name: str) -> str:
    """Why no request can be made for it; nothing where one can."""
    if not name:
        return "resource name may not be empty"
    wrong = is_path_segment_name(name)
    return f"invalid resource name {go_quote(name)}: [{' '.join(wrong)}]" if wrong else ""
