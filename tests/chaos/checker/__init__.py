"""Proves of a history that nothing was lost, nothing was seen that was not so, and everything in an order that can be.

The store's revisions are the witness: they put all writes into one order, so that it need not be searched for (as Wing and Gong's
algorithm does); what is to be shown is that every operation fits into that order between its beginning and its end.
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
    """Everything that is wrong; nothing, if all is well."""
    found = check_writes(history.operations, truth) + check_reads(history.operations, truth)
    return found + check_order(history.operations, truth) + check_watches(history.watches, truth)
