"""Parsing of the completed and failed indexes of an indexed Job, written as `1,3-5,7`.

Upstream: pkg/apis/batch/validation/validation.go, validateIndexesFormat.
"""

from __future__ import annotations

from collections.abc import Iterator

from tetrapod.machinery.golang.integers import atoi
from tetrapod.machinery.golang.quoting import go_quote


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in a text such as `1,3-5,7`, each of which must be below `completions`.

    Raises:
        ValueError: the format is invalid; the message is upstream's.
    """
    total, last = 0, None
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Return the first index that both lists contain, or None.

    Args:
        completed: a list such as `1,3-5,7`. Parts that are invalid are ignored, also in `failed`.
        failed: another list.
        completions: the number that all indexes must be below.
    """
    if not completed or not failed:
        return None
    done, lost = list(_intervals(completed, completions)), list(_intervals(failed, completions))
    while done and lost:
        if done[0][0] <= lost[0][1] and lost[0][0] <= done[0][1]:
            return max(done[0][0], lost[0][0])
        (done if done[0][0] <= lost[0][0] else lost).pop(0)
    return None


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        try:
            yield _interval(part, completions)
        except ValueError:
            continue


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise ValueError(f"the fragment {go_quote(text)} {rule}")
    numbers = [_index(limit, completions) for limit in limits]
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 2 and first >= last:
        raise ValueError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def _index(text: str, completions: int) -> int:
    try:
        index = atoi(text)
    except ValueError:
        raise ValueError(f"cannot convert string to integer for index: {go_quote(text)}") from None
    if index >= completions:
        raise ValueError(f"too large index: {go_quote(text)}")
    return index
