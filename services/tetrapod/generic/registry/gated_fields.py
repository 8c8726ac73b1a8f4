"""Fields of objects that belong to feature gates.

While its gate is disabled, a field of a new object is dropped. An update drops it unless the stored object uses the
gate's fields, so that objects which were stored while the gate was enabled keep them.
Upstream: the functions dropDisabledFields of the strategies
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object

_UNUSED: Final[Sequence[Any]] = (None, [])


class GatedFields(NamedTuple):
    """The fields of a kind that belong to one feature gate.

    Paths consist of names joined by dots. `containers[]` means the elements of a list, `capacity{}` the values of a
    map, and `a|b` both fields. An object with a question mark, such as `lifecycle?`, is removed too if the field was
    all that it contained.

    Attributes:
        gate: the feature gate; "" if the fields are always dropped, because the gate has no effect here.
        paths: the paths of the fields.
        exempt: a value with which the fields do not belong to the gate.
        also: a second gate, without which the first one has no effect; "" for none.
        signs: paths of other fields. If the stored object has one of them, it uses the gate too.
    """

    gate: str
    paths: tuple[str, ...]
    exempt: str | None = None
    also: str = ""
    signs: tuple[str, ...] = ()


class _Node:
    """A name in the paths of a kind, with the names that follow it.

    Attributes:
        kind: "[]" if the field is a list, "{}" if it is a map, and the rest of the paths is in its elements; else "".
        vanishes: whether an object in the field is removed if nothing else was in it.
        gates: the indexes of the gates that own the field.
        children: the names that follow, with their nodes.
    """

    __slots__ = ("children", "gates", "kind", "vanishes")

    def __init__(self, *, kind: str = "", vanishes: bool = False) -> None:
        self.kind, self.vanishes = kind, vanishes
        self.gates: list[int] = []
        self.children: list[tuple[str, _Node]] = []

    def child(self, name: str, *, kind: str, vanishes: bool) -> _Node:
        """Return the node of a name that follows, adding it if it is missing."""
        for other, node in self.children:
            if (other, node.kind, node.vanishes) == (name, kind, vanishes):
                return node
        node = _Node(kind=kind, vanishes=vanishes)
        self.children.append((name, node))
        return node


class _Hit(NamedTuple):
    """A field of an object that belongs to a gate.

    Attributes:
        gate: the index of the gate.
        holder: the object that contains the field.
        name: the name of the field.
        container: the object that contains `holder`, if `holder` is removed when it becomes empty; else None.
        place: the name of `holder` in `container`.
    """

    gate: int
    holder: Object
    name: str
    container: Object | None
    place: str


class FieldGates:
    """The fields of a kind that belong to feature gates.

    All paths are followed in one walk through an object, because it is done for every write.

    Args:
        fields: the fields of each gate.
    """

    def __init__(self, *fields: GatedFields) -> None:
        self._fields = fields
        self._root, self._signs = _Node(), _Node()
        for index, of_gate in enumerate(fields):
            for path in of_gate.paths:
                _add(self._root, path, index)
            for path in of_gate.signs:
                _add(self._signs, path, index)

    def drop(self, new: Object, old: Object) -> None:
        """Remove the fields of disabled gates from a new object, in place, unless the stored object uses them.

        Args:
            new: the new object.
            old: the stored object; {} for a creation.
        """
        hits: list[_Hit] = []
        self._find(new, self._root, hits, None, "")
        if not hits:
            return
        disabled = {hit.gate for hit in hits if not self._is_enabled(hit.gate)}
        if not disabled:
            return
        stored: list[_Hit] = []
        self._find(old, self._root, stored, None, "")
        self._find(old, self._signs, stored, None, "")
        disabled -= {hit.gate for hit in stored if hit.holder[hit.name] not in _UNUSED}
        for hit in hits:
            if hit.gate in disabled:
                hit.holder.pop(hit.name, None)
                if hit.container is not None and not hit.holder:
                    hit.container.pop(hit.place, None)

    def _is_enabled(self, gate: int) -> bool:
        name, also = self._fields[gate].gate, self._fields[gate].also
        return bool(name) and feature_gates.enabled(name) and (not also or feature_gates.enabled(also))

    def _find(self, value: Object, node: _Node, hits: list[_Hit], container: Object | None, place: str) -> None:
        """Append the fields below `value` to `hits`.

        Args:
            value: an object.
            node: the names that may be in it.
            hits: gets the fields.
            container: the object that contains `value`, if `value` vanishes when it becomes empty; else None.
            place: the name of `value` in `container`.
        """
        for name, child in node.children:
            content = value.get(name)
            if content is None:
                continue
            hits += [
                _Hit(gate, value, name, container, place)
                for gate in child.gates
                if content != self._fields[gate].exempt
            ]
            if not child.children:
                continue
            if isinstance(content, dict) and not child.kind:
                self._find(content, child, hits, value if child.vanishes else None, name)
                continue
            for part in _elements(content, child.kind):
                if isinstance(part, dict):
                    self._find(part, child, hits, None, "")


def _add(root: _Node, path: str, gate: int) -> None:
    nodes = [root]
    for part in path.split("."):
        kind = part[-2:] if part.endswith(("[]", "{}")) else ""
        names = part.removesuffix(kind).removesuffix("?").split("|")
        nodes = [node.child(name, kind=kind, vanishes=part.endswith("?")) for node in nodes for name in names]
    for node in nodes:
        node.gates.append(gate)


def _elements(value: Any, kind: str) -> Iterable[Any]:
    """Return the elements of a list, or the values of a map; () if `value` is not of that kind."""
    if kind == "[]":
        return value if isinstance(value, list) else ()
    return value.values() if kind == "{}" and isinstance(value, dict) else ()


NO_GATES: Final = FieldGates()
