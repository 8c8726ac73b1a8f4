"""What every caller of a store or of another service must be ready for."""

from __future__ import annotations


class Unavailable(Exception):
    """The store, or the server that was asked, did not answer, or not in time; whether a write took effect is unknown."""
