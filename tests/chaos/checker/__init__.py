"""Prove from a history that no write was lost, no read returned a state that never existed, and the order of operations
is possible.

The revisions of the store give a total order of all writes, so no search is needed (as in Wing and Gong's algorithm).
It remains to be shown that each operation fits into that order between its start and its end.
"""

from __future__ import annotations

from chaos.checker.order import check_order
from chaos.checker.reads import check_reads
from chaos.checker.violation import Violation
from chaos.checker.watches import check_watches
from chaos.checker.writes import check_writes
from chaos.history import History
from chaos.truth import Truth

__all__ = ["Violation", "check"]


def check(history: History, truth: Truth) -> list[Violation]:
    """Return all violations; an empty list if the history is consistent."""
    found = check_writes(history.operations, truth) + check_reads(history.operations, truth)
    return found + check_order(history.operations, truth) + check_watches(history.watches, truth)
