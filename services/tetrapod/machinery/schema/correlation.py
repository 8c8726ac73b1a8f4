"""What an update left as it was: a value beside its older self, and what is below them.

Properties are compared with properties of the same name, elements of list maps with those of the same keys; elements of other lists
have no older selves, nor have fields that no schema knows. Upstream: CorrelatedObject of apiserver/pkg/cel/common/equality.go, the lists
of maplist.go, ratchetingOptions of apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tetrapod.machinery.equality import identical
from tetrapod.machinery.shapes.node import SchemaNode

TYPE_META: Final = ("apiVersion", "kind")
"""What is not ratcheted at the root: old and new were converted to one version, whatever they had."""
_SCALARS: Final = (str, int, float, bool)


class Correlation:
    """A value of a schema that had another one before, perhaps the same."""

    def __init__(self, node: SchemaNode, new: Any, old: Any, spent: list[float] | None = None) -> None:
        self.spent = [] if spent is None else spent
        """The seconds of each comparison here and below."""
        self._node = node
        self._new = new
        self._old = old
        self._below: dict[str | int, Correlation] = {}

    def key(self, name: str) -> Correlation | None:
        """Of a property, None if one of the two has it not or the schema does not know it."""
        if (found := self._below.get(name)) is not None:
            return found
        if not isinstance(self._old, dict) or not isinstance(self._new, dict) or name not in self._old or name not in self._new:
            return None
        node = self._node.properties.get(name) or self._node.additional_properties
        return None if node is None else self._remember(name, node, self._new[name], self._old[name])

    def index(self, place: int) -> Correlation | None:
        """Of an element of a list map, by the place that it has now."""
        if (found := self._below.get(place)) is not None:
            return found
        if self._elements is None or self._node.items is None:
            return None
        old = self._elements.get(keys_of(self._node, self._new[place]) or "")
        return None if old is None else self._remember(place, self._node.items, self._new[place], old)

    @cached_property
    def unchanged(self) -> bool:
        began = time.perf_counter()
        found = self._compare()
        self.spent.append(time.perf_counter() - began)
        return found

    def _compare(self) -> bool:
        new, old = self._new, self._old
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all((child := self.key(name)) is not None and child.unchanged for name in new)
        if isinstance(new, list) and isinstance(old, list) and self._elements is not None:
            return len(new) == len(old) and all((child := self.index(i)) is not None and child.unchanged for i in range(len(new)))
        return identical(new, old)

    @cached_property
    def _elements(self) -> Mapping[str, Any] | None:
        if self._node.list_type != "map" or not isinstance(self._new, list) or not isinstance(self._old, list):
            return None
        return by_keys(self._node, self._old)

    def _remember(self, step: str | int, node: SchemaNode, new: Any, old: Any) -> Correlation:
        found = self._below[step] = Correlation(node, new, old, self.spent)
        return found


@dataclass(frozen=True, slots=True)
class Ratchet:
    """Whether a failing rule is forgiven at a value: it is what it was; where it was nothing, the nearest above that was something."""

    current: Correlation | None = None
    nearest: Correlation | None = None

    @property
    def forgives(self) -> bool:
        decisive = self.current or self.nearest
        return decisive is not None and decisive.unchanged

    def key(self, name: str) -> Ratchet:
        if self.current is None:
            return self
        if self.nearest is None and name in TYPE_META:
            return Ratchet()
        return Ratchet(self.current.key(name), self.current)

    def index(self, place: int) -> Ratchet:
        return self if self.current is None else Ratchet(self.current.index(place), self.current)

    def beside(self) -> Ratchet:
        """For the rules of an allOf."""
        return Ratchet(None, self.nearest)


def keys_of(node: SchemaNode, item: Any) -> str | None:
    """The keys of an element of a list map, in one text; None where one is missing or no scalar."""
    if node.list_type != "map" or not node.list_map_keys or not isinstance(item, dict):
        return None
    values = [item.get(name) for name in node.list_map_keys]
    return repr(values) if all(isinstance(value, _SCALARS) for value in values) else None


def by_keys(node: SchemaNode, items: list[Any]) -> dict[str, Any]:
    """The elements of a list map by their keys, the first of several with the same."""
    return {keys: item for item in reversed(items) if (keys := keys_of(node, item)) is not None}
