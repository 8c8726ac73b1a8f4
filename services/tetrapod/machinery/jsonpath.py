"""kubectl's JSONPath, used for printer columns of custom resources, scale paths and selectable fields.

`compile("{.spec.replicas}")` parses a template (text, and expressions in braces), `compile_path(".spec.replicas")` a
single expression. They are evaluated on decoded JSON. The parser is in `jsonpath_parser.py`.

Upstream: k8s.io/client-go/util/jsonpath/jsonpath.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from tetrapod.machinery.golang.formatting import plain, type_name
from tetrapod.machinery.jsonpath_parser import (
    ArrayNode,
    FieldNode,
    FilterNode,
    IdentifierNode,
    JsonPathError,
    ListNode,
    LiteralNode,
    Node,
    RecursiveNode,
    UnionNode,
    WildcardNode,
    parse_template,
)

__all__ = ["JsonPath", "JsonPathError", "compile", "compile_path", "print_value"]

_MAX_RESULTS: Final = 100_000
"""The most values of an evaluation, because recursive descents and unions multiply them. Upstream has no limit."""


class JsonPath:
    """A parsed template, which can be evaluated any number of times.

    Args:
        nodes: the parsed template.
        allow_missing_keys: whether a missing field has no value; otherwise it is an error.
    """

    __slots__ = ("_allow_missing", "_nodes", "_simple")

    def __init__(self, nodes: Sequence[Node], allow_missing_keys: bool = True) -> None:
        self._nodes = nodes
        self._allow_missing = allow_missing_keys
        self._simple = _simple_fields(nodes)

    def find(self, data: Any) -> list[list[Any]]:
        """Return one list of values for each part of the template, in order.

        A part is an expression or the text between two of them. An expression that selects nothing has an empty list,
        and a text has itself as its only value. A part within `{range}…{end}` has one list for each iteration.

        Raises:
            JsonPathError: the evaluation failed; with upstream's text.
        """
        if self._simple is not None and self._allow_missing:
            return [_walk_fields(data, self._simple)]
        return _Evaluation(self._allow_missing).find(data, self._nodes)

    def first(self, data: Any) -> Any:
        """Return the first value of the template's first part, or None if that selects nothing or the evaluation fails.

        The first part of a template without text is its first expression.
        """
        try:
            results = self.find(data)
        except JsonPathError:
            return None
        return results[0][0] if results and results[0] else None

    def execute(self, data: Any) -> str:
        """Return the template with each expression replaced by its values.

        The values are separated by spaces, and formatted by `print_value`.

        Raises:
            JsonPathError: the evaluation failed; with upstream's text.
        """
        return "".join(" ".join(print_value(value) for value in values) for values in self.find(data))


def compile(template: str, *, allow_missing_keys: bool = True) -> JsonPath:
    """Parse a template: text, with expressions in braces.

    Args:
        template: the template.
        allow_missing_keys: whether a missing field has no value; otherwise its evaluation is an error.

    Raises:
        JsonPathError: the template is invalid.
    """
    return JsonPath(parse_template(template).nodes, allow_missing_keys)


def compile_path(path: str, *, allow_missing_keys: bool = True) -> JsonPath:
    """Parse a single expression without braces, such as `.spec.replicas` in a CustomResourceDefinition.

    Args:
        path: the expression.
        allow_missing_keys: whether a missing field has no value; otherwise its evaluation is an error.

    Raises:
        JsonPathError: the expression is invalid.
    """
    return compile(f"{{{path}}}", allow_missing_keys=allow_missing_keys)


def print_value(value: Any) -> str:
    """Return a value as a printer column shows it.

    Arrays and objects are shown as Go's JSON, null as `<no value>`, and other values unquoted.
    """
    if isinstance(value, (dict, list)):
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return "<no value>" if value is None else plain(value)


def _simple_fields(nodes: Sequence[Node]) -> tuple[str, ...] | None:
    """Return the field names of a template that is one plain path (`{.spec.replicas}`), or None for other templates.

    Nearly all templates are plain, and `_walk_fields` evaluates them faster.
    """
    if len(nodes) != 1 or not isinstance(nodes[0], ListNode):
        return None
    inner = nodes[0].nodes
    names = tuple(node.name for node in inner if isinstance(node, FieldNode))
    return names if inner and len(names) == len(inner) else None


def _walk_fields(data: Any, names: tuple[str, ...]) -> list[Any]:
    for name in names:
        if not isinstance(data, dict) or name not in data:
            return []
        data = data[name]
    return [data]


class _Evaluation:
    """One evaluation of a template, with the state of its `{range}` and `{end}` expressions."""

    def __init__(self, allow_missing: bool) -> None:
        self._allow_missing = allow_missing
        self._current: list[Any] = []
        self._stack: list[list[Any]] = []
        self._begin = 0
        self._inside = 0
        self._end = 0

    def find(self, data: Any, nodes: Sequence[Node]) -> list[list[Any]]:
        """Return one list of values for each node, evaluated on `data`; a node in a range has one for each iteration.

        Raises:
            JsonPathError: the evaluation failed.
        """
        self._current = [data]
        groups: list[list[Any]] = []
        for i, node in enumerate(nodes):
            results = self._walk(self._current, node)
            if 0 < self._end <= self._inside:
                self._end -= 1
                break
            if self._begin:
                self._begin -= 1
                self._inside += 1
                for k, value in enumerate(results):
                    if k == len(results) - 1:
                        self._inside -= 1
                    groups += self.find(value, nodes[i + 1 :])
                break
            groups.append(results)
        return groups

    def _walk(self, values: list[Any], node: Node) -> list[Any]:
        match node:
            case ListNode():
                return self._walk_list(values, node)
            case FieldNode():
                return self._field(values, node.name)
            case LiteralNode():
                return [node.value] if isinstance(node.value, str) else [node.value] * len(values)
            case ArrayNode():
                return [item for value in values if value is not None for item in _slice(value, node)]
            case WildcardNode():
                return [item for value in values for item in _children(value)]
            case UnionNode():
                return _bounded(item for part in node.parts for item in self._walk_list(values, part))
            case RecursiveNode():
                return _bounded(_descend(values))
            case FilterNode():
                return self._filter(values, node)
            case _:
                return self._identifier(values, node)

    def _walk_list(self, values: list[Any], node: ListNode) -> list[Any]:
        for inner in node.nodes:
            values = self._walk(values, inner)
        return values

    def _field(self, values: list[Any], name: str) -> list[Any]:
        results = [value[name] for value in values if isinstance(value, dict) and name in value]
        if not results and values and not self._allow_missing:
            raise JsonPathError(f"{name} is not found")
        return results

    def _identifier(self, values: list[Any], node: IdentifierNode) -> list[Any]:
        if node.name == "range":
            self._stack.append(self._current)
            self._begin += 1
            return values
        if node.name != "end":
            raise JsonPathError(f"unrecognized identifier {node.name}")
        if self._end < self._inside:
            self._end += 1
        elif self._stack:
            self._current = self._stack.pop()
        else:
            raise JsonPathError("not in range, nothing to end")
        return []

    def _filter(self, values: list[Any], node: FilterNode) -> list[Any]:
        passing = []
        for value in values:
            if not isinstance(value, list):
                raise JsonPathError(f"{plain(value)} is not array or slice and cannot be filtered")
            passing += [item for item in value if self._passes(item, node)]
        return passing

    def _passes(self, item: Any, node: FilterNode) -> bool:
        if node.operator == "exists":
            try:
                return bool(self._walk_list([item], node.left))
            except JsonPathError:
                return False
        sides = []
        for side in (node.left, node.right):
            results = self._walk_list([item], side)
            if len(results) != 1:
                raise JsonPathError("can only compare one element at a time")
            sides.append(results[0])
        return _compare(sides[0], node.operator, sides[1])


def _bounded(values: Iterator[Any]) -> list[Any]:
    results = []
    for value in values:
        results.append(value)
        if len(results) > _MAX_RESULTS:
            raise JsonPathError("too many results")
    return results


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]  # upstream iterates over maps in random order
    return value if isinstance(value, list) else []


def _descend(values: list[Any]) -> Iterator[Any]:
    """Yield every non-empty array and object among `values` and at any depth below them, each before its contents."""
    for value in values:
        inner = _children(value)
        if inner:
            yield value
            yield from _descend(inner)


def _slice(value: Any, node: ArrayNode) -> list[Any]:
    """Return the elements of an array that an index or a slice selects.

    Args:
        value: the array.
        node: the index or slice.

    Raises:
        JsonPathError: the value is not an array, or the index or slice is out of bounds.
    """
    if not isinstance(value, list):
        raise JsonPathError(f"{type_name(value)} is not array or slice")
    length = len(value)
    start = node.start if node.start is not None else 0
    end = node.end if node.end is not None else length
    if start < 0:
        start += length
    if end < 0 or (end == 0 and node.derived_end):
        end += length
    if end != start:
        if start >= length or start < 0:
            raise JsonPathError(f"array index out of bounds: index {start}, length {length}")
        if end > length or end < 0:
            raise JsonPathError(f"array index out of bounds: index {end - 1}, length {length}")
        if start > end:
            raise JsonPathError(f"starting index {start} is greater than ending index {end}")
    if node.step is not None and node.step <= 0:
        raise JsonPathError("step must be > 0")
    return value[start : end : node.step or 1]


def _compare(left: Any, operator: str, right: Any) -> bool:
    """Return whether a comparison of two values in a filter holds.

    Raises:
        JsonPathError: the operator is unknown, the types differ, or they cannot be compared.
    """
    kinds = [_kind(left), _kind(right)]
    if "" in kinds:
        raise JsonPathError("invalid type for comparison")
    if kinds[0] != kinds[1]:
        raise JsonPathError("incompatible types for comparison")
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
    if operator not in ("<", ">", "<=", ">="):
        raise JsonPathError(f"unrecognized filter operator {operator}")
    if kinds[0] == "bool":
        raise JsonPathError("invalid type for comparison")
    less, equal = left < right, left == right
    return bool({"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}[operator])


def _kind(value: Any) -> str:
    """Return "bool", "int", "float" or "string" for a value that filters can compare, or "" for all others."""
    if isinstance(value, bool):
        return "bool"
    return {int: "int", float: "float", str: "string"}.get(type(value), "")
