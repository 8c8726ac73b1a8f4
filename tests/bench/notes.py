"""Why a figure is above its goal; printed under the table only where it is."""

from __future__ import annotations

from typing import Final

NOTES: Final[dict[tuple[str, str], str]] = {}
"""By target and work."""
