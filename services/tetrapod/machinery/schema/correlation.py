"""Correlation of new and old values on update, for validation ratcheting.

Properties are matched by name, and elements of lists of type map by their keys. Elements of other lists and fields that
the schema does not specify have no old value.

Upstream: apiserver/pkg/cel/common/equality.go, CorrelatedObject; maplist.go for the lists;
apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, ratchetingOptions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tetrapod.machinery.equality import identical
from tetrapod.machinery.schema_node import SchemaNode

TYPE_META: Final = ("apiVersion", "kind")
"""Fields that are not ratcheted at the root: the old and the new object were both converted to one version, which may
not be the version that they had.
"""
_SCALARS: Final = (str, int, float, bool)


class Correlation:
    """A new value together with the old value that it corresponds to.

    Args:
        node: the schema of both values.
        new: the new value.
        old: the old value.
        spent: receives the duration of each comparison in seconds; None means a new list.
    """

    def __init__(self, node: SchemaNode, new: Any, old: Any, spent: list[float] | None = None) -> None:
        self.spent = [] if spent is None else spent
        """The duration of each comparison in seconds, shared with the correlations below."""
        self._node = node
        self._new = new
        self._old = old
        self._below: dict[str | int, Correlation] = {}

    def key(self, name: str) -> Correlation | None:
        """Return the correlation of a property, the same object at each call.

        The result is None if one of the values lacks the property or the schema does not specify it.
        """
        if (known := self._below.get(name)) is not None:
            return known
        if (
            not isinstance(self._old, dict)
            or not isinstance(self._new, dict)
            or name not in self._old
            or name not in self._new
        ):
            return None
        node = self._node.properties.get(name) or self._node.additional_properties
        return None if node is None else self._remember(name, node, self._new[name], self._old[name])

    def index(self, place: int) -> Correlation | None:
        """Return the correlation of the element at index `place` of the new list, the same object at each call.

        The result is None if the values are not lists of type map, or the old one has no element with the same keys.
        """
        if (known := self._below.get(place)) is not None:
            return known
        if self._elements is None or self._node.items is None:
            return None
        old = self._elements.get(keys_of(self._node, self._new[place]) or "")
        return None if old is None else self._remember(place, self._node.items, self._new[place], old)

    @cached_property
    def unchanged(self) -> bool:
        """Whether the new value equals the old one.

        It is computed once; the elements of lists of type map may be in any order.
        """
        began = time.perf_counter()
        equal = self._compare()
        self.spent.append(time.perf_counter() - began)
        return equal

    def _compare(self) -> bool:
        new, old = self._new, self._old
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all(
                (child := self.key(name)) is not None and child.unchanged for name in new
            )
        if isinstance(new, list) and isinstance(old, list) and self._elements is not None:
            return len(new) == len(old) and all(
                (child := self.index(i)) is not None and child.unchanged for i in range(len(new))
            )
        return identical(new, old)

    @cached_property
    def _elements(self) -> Mapping[str, Any] | None:
        """The elements of the old list by the text of their keys, or None if the values are not lists of type map."""
        if self._node.list_type != "map" or not isinstance(self._new, list) or not isinstance(self._old, list):
            return None
        return by_keys(self._node, self._old)

    def _remember(self, step: str | int, node: SchemaNode, new: Any, old: Any) -> Correlation:
        correlation = self._below[step] = Correlation(node, new, old, self.spent)
        return correlation


@dataclass(frozen=True, slots=True)
class Ratchet:
    """The ratcheting decision for a value: failures are tolerated if the value did not change.

    Attributes:
        current: the correlation of the value, or None if it has no old value.
        nearest: the correlation of the nearest ancestor that has an old value, or None; it decides if `current` is
            None.
    """

    current: Correlation | None = None
    nearest: Correlation | None = None

    @property
    def tolerates(self) -> bool:
        """Whether failures of the value are tolerated, because it did not change.

        If it has no old value, its nearest ancestor that has one must not have changed.
        """
        decisive = self.current or self.nearest
        return decisive is not None and decisive.unchanged

    def key(self, name: str) -> Ratchet:
        """Return the ratcheting decision for a property of the value.

        Failures of apiVersion and kind of the whole resource are never tolerated; those of embedded resources can be.
        """
        if self.current is None:
            return self
        if self.nearest is None and name in TYPE_META:
            return Ratchet()
        return Ratchet(self.current.key(name), self.current)

    def index(self, place: int) -> Ratchet:
        """Return the ratcheting decision for the element at index `place` of the new value, which is a list."""
        return self if self.current is None else Ratchet(self.current.index(place), self.current)

    def beside(self) -> Ratchet:
        """Return the ratcheting decision for the rules in an allOf of the value's schema.

        As upstream, it depends on the nearest ancestor that has an old value, and not on the value itself.
        """
        return Ratchet(None, self.nearest)


def keys_of(node: SchemaNode, item: Any) -> str | None:
    """Return the values of an element's keys in a list of type map as one text.

    The result is None if a key is missing or not a scalar, or if the list is not of type map.

    Args:
        node: the schema of the list.
        item: the element.
    """
    if node.list_type != "map" or not node.list_map_keys or not isinstance(item, dict):
        return None
    values = [item.get(name) for name in node.list_map_keys]
    return repr(values) if all(isinstance(value, _SCALARS) for value in values) else None


def by_keys(node: SchemaNode, items: list[Any]) -> dict[str, Any]:
    """Return the elements of a list of type map by the text of their keys (`keys_of`).

    If several elements have the same keys, the first is returned. Elements without keys are left out.

    Args:
        node: the schema of the list.
        items: the elements.
    """
    return {keys: item for item in reversed(items) if (keys := keys_of(node, item)) is not None}
