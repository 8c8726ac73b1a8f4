"""The type checker: it assigns each node its type and overloads, and reports type errors with cel-go's messages.

`environment` runs it after parsing. Comparisons across numeric types are allowed, as Kubernetes configures cel-go.

Upstream: cel-go checker/checker.go and checker/env.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.assignable import Substitutions, is_dyn, is_optional, most_general, unwrapped
from tetrapod.machinery.cel.declarations import DeclType
from tetrapod.machinery.cel.escaping import RESERVED
from tetrapod.machinery.cel.nodes import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
    children,
)
from tetrapod.machinery.cel.overloads import OPTIONAL, Overload, functions
from tetrapod.machinery.cel.types import BOOL, DYN, ERROR, CelType
from tetrapod.machinery.cel.values import type_of_literal

_SCALARS: Final = (
    types.BOOL,
    types.BYTES,
    types.DOUBLE,
    types.DURATION,
    types.INT,
    types.NULL,
    types.STRING,
    types.TIMESTAMP,
    types.UINT,
)
_LIBRARIES: Final = (types.opaque("net.IP"), types.opaque("net.CIDR"))
"""The only types of Kubernetes' libraries that an expression can name."""
_TYPE_NAMES: Final = {kind.name: kind for kind in (*_SCALARS, *_LIBRARIES)} | {
    "type": types.TYPE,
    "list": types.list_of(DYN),
    "map": types.map_of(DYN, DYN),
    "optional_type": types.optional_of(DYN),
}
_SCALAR_NAMES: Final = {"duration": types.DURATION, "timestamp": types.TIMESTAMP}
_NO_TYPE: Final = types.opaque("")
"""The type of an undeclared field of JSONPatch. As upstream, nothing is assignable to it, and no `undefined field`
error is reported.
"""
_PATCH_FIELDS: Final = {"op": types.STRING, "path": types.STRING, "from": types.STRING, "value": DYN}


class Scope:
    """The names that an expression can use: variables, named types, and fields of object types.

    Args:
        variables: the type of each variable.
        objects: the fields of each object type, by type name and escaped field name.
        patch_types: whether `Object`, `Object.…` and `JSONPatch` are types.
        functions: the functions of `overloads.OPTIONAL` that the expression can use.
    """

    def __init__(
        self,
        variables: Mapping[str, CelType],
        objects: Mapping[str, Mapping[str, DeclType]],
        *,
        patch_types: bool,
        functions: frozenset[str] = frozenset(),
    ) -> None:
        self.variables = variables
        self._objects = objects
        self._patch = patch_types
        self._functions = functions

    def type_named(self, name: str) -> CelType | None:
        """Return the type with a name such as `int` or `Object.spec`, or None for an unknown name."""
        kind = _TYPE_NAMES.get(name) or (_SCALAR_NAMES.get(name) if self._objects else None)
        if kind is not None:
            return kind
        return types.object_type(name) if self.is_struct(name) else None

    def is_struct(self, name: str) -> bool:
        """Return whether a name is that of an object type."""
        return name in self._objects or (
            self._patch and (name in ("Object", "JSONPatch") or name.startswith("Object."))
        )

    def field(self, struct: str, name: str) -> CelType | None:
        """Return the type of a field of an object type, or None if the field is not declared.

        Fields of `Object` and the types below it are always `dyn`. Fields that JSONPatch does not have are of a type to
        which nothing is assignable.

        Args:
            struct: the name of the object type.
            name: the CEL name of the field, which may be escaped.
        """
        fields = self._objects.get(struct)
        if fields is not None:
            decl = fields.get(name) or (fields.get(f"__{name}__") if name in RESERVED else None)
            return None if decl is None else decl.cel
        if self._patch and struct == "JSONPatch":
            return _PATCH_FIELDS.get(name, _NO_TYPE)
        return DYN if self._patch and (struct == "Object" or struct.startswith("Object.")) else None

    def function(self, name: str) -> tuple[Overload, ...] | None:
        """Return the overloads of a function, which may have a leading dot, or None if expressions cannot use it."""
        name = name.removeprefix(".")
        return functions().get(name) if name not in OPTIONAL or name in self._functions else None


class Checker:
    """The type checker of one tree.

    Attributes:
        problems: the offset (in code points) and the message of each error that was reported.

    Args:
        scope: the names that the expression can use.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._locals: list[dict[str, CelType]] = []
        self._subs = Substitutions()
        self.problems: list[tuple[int, str]] = []

    def check(self, node: Node) -> CelType:
        """Set the type of every node of a tree, and return the type of its root.

        Identifiers, selections and calls are resolved in place. Errors are appended to `problems`, and nodes with
        errors have an error type.
        """
        self._check(node)
        todo = [node]
        while todo:
            current = todo.pop()
            current.type = self._subs.apply(current.type, to_dyn=True)
            todo += children(current)
        return node.type

    def _problem(self, at: int, message: str) -> None:
        self.problems.append((at, message))

    def _check(self, node: Node) -> None:
        match node:
            case Literal():
                node.type = type_of_literal(node.value)
            case Ident():
                self._ident(node)
            case Select():
                self._select(node)
            case Call():
                self._call(node)
            case ListNode():
                self._list(node)
            case MapNode():
                self._map(node)
            case StructNode():
                self._struct(node)
            case Comprehension():
                self._comprehension(node)

    def _local(self, name: str) -> CelType | None:
        for names in reversed(self._locals):
            if name in names:
                return names[name]
        return None

    def _global(self, node: Ident, name: str) -> bool:
        """Set the type of an identifier that names a variable or a type, and return whether `name` is such a name.

        Args:
            node: the identifier, which is changed only if the result is True.
            name: its name without a leading dot.
        """
        variable = self._scope.variables.get(name)
        if variable is not None:
            node.type = variable
            return True
        kind = self._scope.type_named(name)
        if kind is None:
            return False
        node.type, node.type_name = types.type_of(kind), kind
        return True

    def _ident(self, node: Ident) -> None:
        name = node.name
        local = self._local(name)
        if local is not None:
            node.type = local
            return
        bare = name.removeprefix(".")
        if not self._global(node, bare):
            node.type = ERROR
            self._problem(node.at, f"undeclared reference to '{name}' (in container '')")
            return
        node.name = f".{bare}" if self._local(bare) is not None else bare

    def _select(self, node: Select) -> None:
        """Set the type of the selection of a field, and check its operand.

        A dotted name of a variable or type is a selection too, and is resolved here. An undeclared field is reported in
        `problems`.
        """
        name = None if node.test_only else _qualified(node)
        if name is not None and self._local(name.partition(".")[0]) is None:
            resolved = Ident(node.at, name.removeprefix("."))
            if self._global(resolved, resolved.name):
                node.resolved, node.type = resolved, resolved.type
                return
        result = self._field(node, node.operand, node.field, optional=False)
        node.type = BOOL if node.test_only else self._subs.apply(result)

    def _field(self, node: Node, operand: Node, name: str, *, optional: bool) -> CelType:
        """Check an operand and return the type of one of its fields.

        The type is an optional if `optional` is set or the operand is an optional. It is an error type if an object
        type has no such field, which is reported. It is `dyn` for operands that are neither maps nor objects. They are
        reported too, except for `dyn`, type parameters and operands with an error type.

        Args:
            node: the selection, whose offset errors have.
            operand: the operand, which is checked first.
            name: the name of the field.
            optional: whether the selection was written as `?.`.
        """
        self._check(operand)
        target, was_optional = unwrapped(self._subs.apply(operand.type))
        result = ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            result = self._field_type(node.at, target.name, name) or ERROR
        elif target.kind == "param":
            self._subs.assign(DYN, target)
            result = DYN
        else:
            if not is_dyn(target) and target.kind != "error":
                self._problem(node.at, f"type '{target}' does not support field selection")
            result = DYN
        return types.optional_of(result) if was_optional or optional else result

    def _field_type(self, at: int, struct: str, name: str) -> CelType | None:
        if not self._scope.is_struct(struct):
            self._problem(at, f"unexpected failed resolution of '{struct}'")
            return None
        field_type = self._scope.field(struct, name)
        if field_type is None:
            self._problem(at, f"undefined field '{name}'")
        return field_type

    def _call(self, node: Call) -> None:
        """Set the type of a call and check its operands.

        The function may have a dotted name that was parsed as a receiver (`optional.of`). An unknown function, or
        arguments that match no overload, are reported in `problems`.
        """
        if node.function == "_?._":
            operand, field = node.args
            assert isinstance(field, Literal)
            self._check(field)
            node.type = self._subs.apply(self._field(node, operand, field.value, optional=True))
            node.overloads = ("select_optional_field",)
            return
        for arg in node.args:
            self._check(arg)
        if node.target is not None:
            prefix = _qualified(node.target)
            if prefix is not None and (overloads := self._scope.function(f"{prefix}.{node.function}")) is not None:
                node.function, node.target = f"{prefix}.{node.function}".removeprefix("."), None
                self._resolve(node, overloads)
                return
            self._check(node.target)
        overloads = self._scope.function(node.function)
        if overloads is None:
            node.type = ERROR
            self._problem(node.at, f"undeclared reference to '{node.function}' (in container '')")
            return
        node.function = node.function.removeprefix(".")
        self._resolve(node, overloads)

    def _resolve(self, node: Call, overloads: Sequence[Overload]) -> None:
        """Set the type of a call, and the overloads that match its arguments. Without a match, report an error.

        The type is `dyn` if the results of the matching overloads differ.

        Args:
            node: the call, whose operands have been checked.
            overloads: all overloads of its function.
        """
        operands = node.operands
        if node.function in ("_&&_", "_||_"):
            self._logic(node, overloads[0])
            return
        given = [operand.type for operand in operands]
        result: CelType | None = None
        matching = []
        for overload in overloads:
            if overload.member != (node.target is not None):
                continue
            args, returned = overload.args, overload.result
            if overload.params:
                fresh = {name: self._subs.fresh() for name in overload.params}
                args = tuple(_instance(a, fresh) for a in args)
                returned = _instance(returned, fresh)
            if not self._subs.assign_all(given, args):
                continue
            matching.append(overload.id)
            returned = self._subs.apply(returned)
            if result is None:
                result = returned
            elif not is_dyn(result) and returned != result:
                result = DYN
        if result is None:
            shown = [str(self._subs.apply(g, to_dyn=True)) for g in given]
            target = f"{shown.pop(0)}." if node.target is not None else ""
            text = f"found no matching overload for '{node.function}' applied to '{target}({', '.join(shown)})'"
            self._problem(node.at, text)
            node.type = ERROR
            return
        node.type, node.overloads = result, tuple(matching)

    def _logic(self, node: Call, overload: Overload) -> None:
        node.type, node.overloads = BOOL, (overload.id,)
        for arg in node.args:
            if not self._subs.assign(arg.type, BOOL):
                self._problem(arg.at, f"expected type 'bool' but found '{arg.type}'")
                node.type = ERROR

    def _list(self, node: ListNode) -> None:
        joined: CelType | None = None
        for i, element in enumerate(node.elements):
            self._check(element)
            joined = self._join(element, joined, self._given(element, i in node.optional))
        node.type = types.list_of(joined or self._subs.fresh())

    def _map(self, node: MapNode) -> None:
        keys: CelType | None = None
        values: CelType | None = None
        for entry in node.entries:
            assert entry.key is not None
            self._check(entry.key)
            keys = self._join(entry.key, keys, entry.key.type)
            self._check(entry.value)
            values = self._join(entry.value, values, self._given(entry.value, entry.optional))
        if keys is None or values is None:
            keys, values = self._subs.fresh(), self._subs.fresh()
        node.type = types.map_of(keys, values)

    def _given(self, value: Node, optional: bool) -> CelType:
        """Return the type that an element or entry contributes to the type of its list, map or object.

        For an element or entry that is written with `?`, this is the type inside the optional. If the value is neither
        an optional nor `dyn`, an error is reported.

        Args:
            value: the checked node of the element or value.
            optional: whether it was written with `?`.
        """
        if not optional:
            return value.type
        inner, was_optional = unwrapped(value.type)
        if not was_optional and not is_dyn(inner):
            self._problem(value.at, f"expected type '{types.optional_of(inner)}' but found '{inner}'")
        return inner

    def _join(self, node: Node, previous: CelType | None, current: CelType) -> CelType:
        """Return the common type of the elements before `node` (None if it is the first) and of `node`.

        The type is `dyn` if they have no common type.

        Args:
            node: the element.
            previous: the common type so far, or None.
            current: the type of the element.
        """
        if previous is None:
            return current
        if self._subs.assign(previous, current):
            return most_general(previous, current)
        return DYN  # `literals` rejects lists and maps of mixed types

    def _struct(self, node: StructNode) -> None:
        name = node.type_name.removeprefix(".")
        kind = self._scope.type_named(name)
        if kind is None:
            self._problem(node.at, f"undeclared reference to '{node.type_name}' (in container '')")
            node.type = ERROR
            return
        node.type_name = name
        if kind.kind != "struct":
            self._problem(node.at, f"'{kind}' is not a message type")
            kind = ERROR
        node.type = kind
        for entry in node.entries:
            self._struct_field(entry, name)

    def _struct_field(self, entry: Entry, struct: str) -> None:
        self._check(entry.value)
        expected = self._field_type(entry.at, struct, entry.name) or ERROR
        given = self._given(entry.value, entry.optional)
        if not self._subs.assign(expected, given):
            self._problem(
                entry.at, f"expected type of field '{entry.name}' is '{expected}' but provided type is '{given}'"
            )

    def _comprehension(self, node: Comprehension) -> None:
        self._check(node.range)
        self._check(node.init)
        over = self._subs.apply(node.range.type)
        self._locals.append({node.accu: node.init.type})
        first, second = ERROR, ERROR
        if over.kind == "list":
            first, second = (types.INT, over.params[0]) if node.var2 else (over.params[0], ERROR)
        elif over.kind == "map":
            first, second = over.params
        elif over.kind in ("dyn", "error", "param"):
            self._subs.assign(DYN, over)
            first = second = DYN
        else:
            text = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self._problem(node.range.at, text)
        self._locals.append({node.var: first, node.var2: second} if node.var2 else {node.var: first})
        self._check(node.condition)
        self._expect(node.condition, BOOL)
        self._check(node.step)
        self._expect(node.step, node.init.type)
        self._locals.pop()
        self._check(node.result)
        self._locals.pop()
        node.type = self._subs.apply(node.result.type)

    def _expect(self, node: Node, expected: CelType) -> None:
        if not self._subs.assign(expected, node.type):
            self._problem(node.at, f"expected type '{expected}' but found '{node.type}'")


def _qualified(node: Node) -> str | None:
    """Return the dotted name (`a.b.c`) of an identifier or a chain of selections from one, or None for other nodes."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    names.append(node.name)
    return ".".join(reversed(names))


def _instance(kind: CelType, fresh: Mapping[str, CelType]) -> CelType:
    """Return a type of an overload's signature with its type parameters replaced by those of `fresh`.

    Args:
        kind: the type of the result or of a parameter in the signature.
        fresh: the replacements by name of the type parameter. Parameters without one are kept.
    """
    if kind.kind == "param":
        return fresh.get(kind.name, kind)
    return CelType(kind.kind, kind.name, tuple(_instance(p, fresh) for p in kind.params)) if kind.params else kind


__all__ = ["Checker", "Scope", "is_optional"]
