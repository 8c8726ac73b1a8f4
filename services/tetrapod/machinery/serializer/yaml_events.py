"""YAML decoding with PyYAML, imported only when a body needs a YAML parser.

YAML 1.1 is read as by go-yaml v2: `yes` and `on` are booleans, `010` is 8, dates and sexagesimal numbers stay strings,
and only the first document is read. libyaml produces the events; the nodes are composed here, because PyYAML's composer
recurses in C without a limit (a body of brackets would crash the process) and hides duplicate keys. Keys are sorted.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from tetrapod.machinery.depth import MAX_DEPTH
from tetrapod.machinery.error_limits import record
from tetrapod.machinery.golang.formatting import syntax
from tetrapod.machinery.golang.json_numbers import shortest_integer
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.serializer.errors import Decoded, DecodeError
from tetrapod.machinery.serializer.yaml_scalars import resolve, resolve_tagged
from tetrapod.machinery.sorting import sort_large

_INT64: Final = 1 << 63
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_BINARY_TAG: Final = "tag:yaml.org,2002:binary"
_NULL: Final = "\ud800"
"""Represents the key null: a lone surrogate, which YAML cannot contain."""
_TOO_DEEP: Final = "yaml: exceeded max depth of 10000"
_LIMIT_OF_LIBYAML: Final = "exceeded maximum nesting depth"
"""The error of PyYAML from 6.0.4 on, which accepts a depth of 1,000. requirements.lock has an earlier version."""
_ALIAS_RATIO_LOW: Final = 400_000
_ALIAS_RATIO_HIGH: Final = 4_000_000


class _Node:
    """A YAML node. The type of `value` depends on `kind`.

    - scalar: the text,
    - sequence: the nodes,
    - mapping: the key and value nodes, alternating,
    - alias: the target node.

    Args:
        kind: "scalar", "sequence", "mapping" or "alias".
        event: PyYAML's event with which the node begins.
        value: the value.
    """

    __slots__ = ("event", "kind", "line", "value")

    def __init__(self, kind: str, event: Any, value: Any) -> None:
        self.kind = kind
        self.event = event
        self.value = value
        self.line = event.start_mark.line + 1


def decode(data: bytes) -> Decoded:
    """Decode the first document of a YAML body; a body without one is null.

    Raises:
        DecodeError: the body is not YAML, or has values that JSON cannot express.
    """
    try:
        root = _compose(yaml.parse(data, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        if error.problem == _LIMIT_OF_LIBYAML:
            raise DecodeError(_TOO_DEEP) from None
        raise DecodeError(f"yaml: {_where(error)}{error.problem or 'unknown problem parsing YAML content'}") from None
    except yaml.reader.ReaderError as error:
        raise DecodeError(f"yaml: {error.reason}") from None
    except yaml.YAMLError as error:
        raise DecodeError(f"yaml: {error}") from None
    if root is None:
        return Decoded(None, [])
    builder = _Builder()
    built = builder.build(root, 0)
    _free(root)
    if builder.unsupported:
        raise DecodeError(builder.unsupported)
    return Decoded(built, builder.duplicates)


def _where(error: yaml.MarkedYAMLError) -> str:
    """Return the line of an error as `line N: `, or "" if it is unknown or go-yaml omits it.

    go-yaml counts lines from 0 for errors of the parser and from 1 for those of the scanner, and omits line 0.
    """
    for mark in (error.problem_mark, error.context_mark):
        if mark is not None and mark.line != 0:
            return f"line {mark.line + isinstance(error, yaml.scanner.ScannerError)}: "
    return ""


def _compose(events: Iterator[Any]) -> _Node | None:
    """Return the root node of the first document, built without recursion, or None if the stream contains no document.

    Raises:
        DecodeError: an alias refers to an unknown anchor, or the nodes nest too deeply.
    """
    anchors: dict[str, _Node] = {}
    open_nodes: list[_Node] = []
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            node = _Node("scalar", event, event.value)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise DecodeError(f"yaml: unknown anchor '{event.anchor}' referenced")
            node = _Node("alias", event, anchors[event.anchor])
        elif isinstance(event, yaml.CollectionStartEvent):
            node = _Node("mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence", event, [])
            if len(open_nodes) > MAX_DEPTH:
                raise DecodeError(_TOO_DEEP)
        elif isinstance(event, yaml.CollectionEndEvent):
            node = open_nodes.pop()
            if not open_nodes:
                return node
            continue
        else:
            if isinstance(event, yaml.DocumentEndEvent):
                return None
            continue
        if getattr(event, "anchor", None) and node.kind != "alias":
            anchors[event.anchor] = node
        if open_nodes:
            open_nodes[-1].value.append(node)
        if node.kind in ("mapping", "sequence"):
            open_nodes.append(node)
        elif not open_nodes:
            return node
    return None


def _free(root: _Node) -> None:
    """Deallocate the nodes of a tree one by one.

    Deallocated all at once, a million of them keep all other threads waiting for 100 ms.

    Args:
        root: the root of the tree, which must not be used afterwards.
    """
    pending = [root]
    while pending:
        node = pending.pop()
        if node.kind in ("sequence", "mapping"):
            pending.extend(node.value)
            node.value = ()


class _Fields(NamedTuple):
    """The fields of a mapping that is being built.

    Attributes:
        values: the values by key, of which the last one wins.
        known: the keys that were added, as Go prints them. One that is added again is a duplicate, also if one of the
            two belongs to a merged mapping.
    """

    values: dict[str, Any]
    known: set[str]


class _Builder:
    """The conversion of one document's nodes to JSON values. `duplicates` has the texts of its duplicate keys.

    `unsupported` is the error of a mapping with a null key, "" without one. YAML has such keys, and JSON does not, so
    errors about the YAML precede it.

    Aliases are expanded each time they occur; they are counted to limit the size of the result.
    """

    def __init__(self) -> None:
        self.duplicates: list[str] = []
        self.unsupported = ""
        self._count = 0
        self._alias_count = 0
        self._alias_depth = 0
        self._expanding: set[int] = set()

    def build(self, node: _Node, depth: int, into: _Fields | None = None) -> Any:
        """Return the JSON value of a node.

        Args:
            node: the node.
            depth: the number of sequences and mappings around the node.
            into: the fields of the mapping that merges the node, a mapping or its alias; None if it is not merged.

        Raises:
            DecodeError: the aliases expand too much, the nodes nest too deep, or JSON cannot express the value.
        """
        self._count += 1
        if self._alias_depth:
            self._alias_count += 1
        if (
            self._alias_count > 100
            and self._count > 1000
            and self._alias_count / self._count > _allowed_ratio(self._count)
        ):
            raise DecodeError("yaml: document contains excessive aliasing")
        if depth > MAX_DEPTH:
            raise DecodeError(_TOO_DEEP)
        match node.kind:
            case "scalar":
                return _json_number(_scalar(node))
            case "sequence":
                return [self.build(item, depth + 1) for item in node.value]
            case "mapping":
                return self._mapping(node, depth, into)
            case _:
                return self._alias(node, depth, into)

    def _alias(self, node: _Node, depth: int, into: _Fields | None) -> Any:
        target: _Node = node.value
        if id(target) in self._expanding:
            raise DecodeError(f"yaml: anchor '{node.event.anchor}' value contains itself")
        self._expanding.add(id(target))
        self._alias_depth += 1
        try:
            return self.build(target, depth + 1, into)
        finally:
            self._alias_depth -= 1
            self._expanding.discard(id(target))

    def _mapping(self, node: _Node, depth: int, into: _Fields | None) -> dict[str, Any]:
        self._expanding.add(id(node))
        values, known = fields = into or _Fields({}, set())
        children = iter(node.value)
        for key_node, value_node in zip(children, children, strict=True):
            if _is_merge(key_node):
                self._merge(value_node, fields, depth)
                continue
            text, shown = self._key(key_node, depth)
            value = self.build(value_node, depth + 1)
            if shown in known:
                record(self.duplicates, f"line {value_node.line}: key {shown} already set in map")
            known.add(shown)
            values[text] = value
        self._expanding.discard(id(node))
        if _NULL in values and into is None:
            shown = _go_syntax(values.pop(_NULL))
            self.unsupported = f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}"
        return {key: values[key] for key in sort_large(values)} if into is None else values

    def _merge(self, node: _Node, into: _Fields, depth: int) -> None:
        for source in reversed(node.value) if node.kind == "sequence" else (node,):
            target = source.value if source.kind == "alias" else source
            if target.kind != "mapping":
                raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
            self.build(source, depth + 1, into)

    def _key(self, node: _Node, depth: int) -> tuple[str, str]:
        """Return a mapping's key as JSON (`_NULL` for null), and as Go's %#v prints it.

        Args:
            node: the key.
            depth: the number of sequences and mappings around the mapping.

        Raises:
            DecodeError: the key is not a scalar.
        """
        target: _Node = node.value if node.kind == "alias" else node
        if target.kind != "scalar":
            raise DecodeError(f"yaml: invalid map key: {_go_syntax(self.build(target, depth + 1))}")
        value = _scalar(target)
        match value:
            case str():
                return value, go_quote(value)
            case bool():
                return ("true", "true") if value else ("false", "false")
            case int():
                return str(value), str(value)
            case float():
                text = (
                    ".nan"
                    if math.isnan(value)
                    else ("-.inf" if value < 0 else ".inf")
                    if math.isinf(value)
                    else f"{value:.9g}"
                )
                return text, text
            case _:
                return _NULL, "<nil>"


def _go_syntax(value: Any) -> str:
    """Return the value of a node as Go's %#v prints it."""
    text = syntax(value)
    return "<nil>" if text == "interface {}(nil)" else text.replace("map[string]", "map[interface {}]")


def _allowed_ratio(count: int) -> float:
    if count <= _ALIAS_RATIO_LOW:
        return 0.99
    if count >= _ALIAS_RATIO_HIGH:
        return 0.10
    return 0.99 - 0.89 * (count - _ALIAS_RATIO_LOW) / (_ALIAS_RATIO_HIGH - _ALIAS_RATIO_LOW)


def _is_merge(node: _Node) -> bool:
    return node.kind == "scalar" and node.value == "<<" and (node.event.implicit[0] or node.event.tag == _MERGE_TAG)


def _scalar(node: _Node) -> Any:
    """Return the value of a scalar node by its tag or its text: a string, number, boolean or None.

    Raises:
        DecodeError: the text does not match the tag.
    """
    event = node.event
    if event.tag == _BINARY_TAG:
        try:
            return base64.b64decode(node.value, validate=True).decode("utf-8", "replace")
        except ValueError:  # binascii.Error, or characters beyond ASCII
            raise DecodeError("yaml: !!binary value contains invalid base64 data") from None
    if event.tag is None or event.tag == "!":
        return resolve(node.value) if event.implicit[0] and event.tag is None else node.value
    try:
        return resolve_tagged(node.value, event.tag)
    except ValueError as error:
        raise DecodeError(f"yaml: {error}") from None


def _json_number(value: Any) -> Any:
    """Return a scalar's value after a round trip through JSON.

    8.0 becomes 8, and integers beyond int64 become floats. Values that are not numbers are returned as they are.

    Raises:
        DecodeError: the value is NaN or infinite.
    """
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise DecodeError(f"json: unsupported value: {shown}")
        return shortest_integer(value) if value.is_integer() and abs(value) < _INT64 else value
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return float(value)
    return value
