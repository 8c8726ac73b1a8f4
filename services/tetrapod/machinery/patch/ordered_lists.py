"""Ordering of merged lists: the order of the patch, with the other elements of the existing list interleaved.

Strategic merge patch uses it.

Upstream: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go, normalizeElementOrder.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

from tetrapod.machinery.golang.formatting import syntax, type_name
from tetrapod.machinery.patch.mergepatch_errors import bad_argument_type, bad_patch, no_merge_key

_INSERTION_SORTED: Final = 12
"""The number of elements up to which Go's sort.Slice uses insertion sort. With more elements, the position of elements
without a place depends on its pivots.
"""


def identity(value: Any) -> Hashable:
    """Return a hashable key that is equal for equal values of one type, so that 1, 1.0 and true differ."""
    return (type(value), syntax(value) if isinstance(value, dict | list) else value)


def keys_of(values: Iterable[Any]) -> set[Hashable]:
    """Return the set of the keys by which values are compared: 1, 1.0 and true have different keys."""
    return {identity(v) for v in values}


def distinct(values: list[Any]) -> list[Any]:
    """Return the values without duplicates, each at the position of the first one."""
    return list({identity(v): v for v in values}.values())


def in_order(merged: list[Any], *, wanted: list[Any], live: list[Any], merge_key: str, of_maps: bool) -> list[Any]:
    """Return the elements of a merged list in their final order.

    Elements that are in `wanted` have its order. The other elements are put between them as in `live`.

    Args:
        merged: the elements of the result.
        wanted: the list of the patch, or of its `$setElementOrder` directive.
        live: the existing list.
        merge_key: the field that identifies elements, or "".
        of_maps: whether the elements are maps.

    Raises:
        StatusError: 400 if an element has no merge key, or is not a map although the others are.
    """
    key = _key_function(merge_key) if of_maps else identity
    if of_maps and merge_key:
        _check_all_are_maps(wanted, {key(v) for v in merged}, merge_key)
    wanted_places, live_places = _places(wanted, key), _places(live, key)
    named = [(key(v), v) for v in merged]
    ours = _sorted([(k, v) for k, v in named if k in wanted_places], wanted_places)
    others = _sorted([(k, v) for k, v in named if k not in wanted_places], live_places)
    out: list[Any] = []
    i = j = 0
    while i < len(others) and j < len(ours):
        left, right = live_places.get(others[i][0]), live_places.get(ours[j][0])
        if left is not None and right is not None and left < right:
            out.append(others[i][1])
            i += 1
        else:
            out.append(ours[j][1])
            j += 1
    out.extend(v for _, v in others[i:])
    out.extend(v for _, v in ours[j:])
    return out


def _check_all_are_maps(wanted: list[Any], present: set[Hashable], merge_key: str) -> None:
    """Check that the elements of an order list are maps, as far as upstream reads it.

    Upstream searches the order list for each merged element, and reports values of a wrong type before that element.

    Args:
        wanted: the order list.
        present: the keys of the merged elements.
        merge_key: the field that identifies elements.

    Raises:
        StatusError: 400 if an element that upstream reads is not a map.
    """
    remaining = set(present)
    for i, value in enumerate(wanted):
        if not remaining:
            return
        if not isinstance(value, dict):
            raise bad_patch(f"value for key {i} is not a map")
        if merge_key in value:
            remaining.discard(identity(value[merge_key]))


def _key_function(merge_key: str) -> Callable[[Any], Hashable]:
    def key(element: Any) -> Hashable:
        if not isinstance(element, dict):
            raise bad_argument_type("map[string]interface {}", type_name(element))
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        return identity(element[merge_key])

    return key


def _places(values: list[Any], key: Callable[[Any], Hashable]) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for i, value in enumerate(values):
        places.setdefault(key(value), i)
    return places


def _sorted(named: list[tuple[Hashable, Any]], places: dict[Hashable, int]) -> list[tuple[Hashable, Any]]:
    if all(k in places for k, _ in named):
        return sorted(named, key=lambda item: places[item[0]])
    if len(named) > _INSERTION_SORTED:
        return [item for item in named if item[0] not in places] + _sorted(
            [item for item in named if item[0] in places], places
        )
    # Upstream's comparison treats an element without a place as smaller than any other, so its insertion sort moves it
    # to the front.
    out: list[tuple[Hashable, Any]] = []
    for item in named:
        at = len(out)
        while at > 0 and (
            item[0] not in places or out[at - 1][0] not in places or places[item[0]] < places[out[at - 1][0]]
        ):
            at -= 1
        out.insert(at, item)
    return out
