"""The lifetime of a series of a metric, and the number of series that a family may have.

A series belongs to the objects that its labels name: a resource (`group` and `resource`), a flow schema, a priority
level. When such an object is deleted, `retire` drops its series, and none begins again before `restore`. Counters of an
object that comes back start at 0.

A family has at most MOST_SERIES series. Every further set of labels is counted in one series whose label values are all
"unexpected", the value that upstream uses for values outside an allow list (component-base/metrics/opts.go).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Final

MOST_SERIES: Final = 10_000
"""The maximum number of series of one family. The built-in resources need less than 2,000 in the largest family."""
UNEXPECTED: Final = "unexpected"
OVERFLOWS: Final = [0.0]
"""How many label values were replaced by UNEXPECTED since the start or the last reset, as the only element."""
_MOST_RETIRED: Final = 100_000
"""The most deleted objects to remember, about 20 MB. The oldest are forgotten; no request for them can still be in
flight.
"""

Hook = Callable[[Mapping[str, str]], None]
_retired: Final[dict[tuple[str, ...], dict[tuple[str, ...], None]]] = {}
_hooks: Final[list[Callable[[], Hook | None]]] = []


def on_change(hook: Hook) -> None:
    """Call `hook` from now on after each `retire`, and each `restore` of a retired object, with the labels of the call.

    Modules that keep series, or numbers that are read at a scrape, drop them in this hook. Bound methods are held by
    weak references.
    """
    _hooks.append(weakref.WeakMethod(hook) if hasattr(hook, "__self__") else lambda: hook)


def retire(labels: Mapping[str, str]) -> None:
    """Drop all series that have these label values, and create no new ones, because their object was deleted.

    Args:
        labels: the values by label name that identify the object, such as group and resource.
    """
    names, values = _key(labels)
    retired_values = _retired.setdefault(names, {})
    retired_values[values] = None
    if len(retired_values) > _MOST_RETIRED:
        del retired_values[next(iter(retired_values))]
    _changed(labels)


def restore(labels: Mapping[str, str]) -> None:
    """Allow series with these label values again, because an object with them was created after `retire`.

    `labels` are the values by label name that were passed to `retire`. For other labels nothing happens.
    """
    names, values = _key(labels)
    if values in _retired.get(names, ()):
        del _retired[names][values]
        _changed(labels)


def retired(names: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether a series belongs to a deleted object: `retire` was called for it, and not `restore` since.

    Args:
        names: the names of the labels of the series.
        values: their values, in the same order.
    """
    for needed, retired_values in _retired.items():
        if (
            retired_values
            and all(name in names for name in needed)
            and tuple(values[names.index(name)] for name in needed) in retired_values
        ):
            return True
    return False


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = tuple(sorted(labels))
    return names, tuple(labels[name] for name in names)


def _changed(labels: Mapping[str, str]) -> None:
    alive = [(reference, hook) for reference in _hooks if (hook := reference()) is not None]
    _hooks[:] = [reference for reference, _ in alive]
    for _, hook in alive:
        hook(labels)
