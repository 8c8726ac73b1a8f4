"""Decoding of CBOR to an object of a built-in kind, as upstream decodes it to a Go struct.

The result has the JSON form of the object, which machinery/schema/decode.py then normalizes. These rules differ from
those for JSON:

- The value of an unknown field is skipped. It may contain anything that is well-formed.
- A `[]byte` is a byte string that contains base64. If a tag 21 to 23 is around it, it contains the bytes themselves.
- Quantities and times are strings. Numbers are rejected.
- An error names the outermost field that contains the value.

Upstream: github.com/fxamacker/cbor, decode.go, parseToValue; UnmarshalCBOR of the types of k8s.io/apimachinery
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from tetrapod.machinery.cbor.decoding import (
    ARRAY,
    BREAK,
    BYTE_ERRORS,
    BYTES,
    FLOATS,
    LATER_ENCODINGS,
    MAP,
    NEGATIVE,
    NULL,
    PRIMITIVE,
    SHORT_ITEMS,
    TAG,
    TEXT,
    TYPE_NAMES,
    UNSIGNED,
    InvalidError,
    Reader,
    read_head,
)
from tetrapod.machinery.depth import MAX_DEPTH
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.schema.decode_errors import DecodeError, Mismatch
from tetrapod.machinery.schema.decode_scalars import decode_base64, go_type
from tetrapod.machinery.schema_node import SchemaNode

_UNDEFINED: Final = 0xF7
_BOOLEANS: Final = {0xF4: False, 0xF5: True}
_STRINGS: Final = frozenset({"Quantity", "Time", "MicroTime"})
"""The types whose own decoders read a string."""
_UNTYPED: Final = frozenset({"RawExtension", "FieldsV1", "JSON", "Duration"})
"""The types that keep any value, or decode its JSON form."""
_LIMITS: Final = {"int32": 1 << 31}
_INT64: Final = 1 << 63
_NO_ARRAY: Final = "cannot decode CBOR array to struct without toarray option"
_RAW: Final = "failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR: "


class TypeMismatch(Mismatch):
    """The error for a value of the wrong type.

    Args:
        found: the type of the value in CBOR (`TYPE_NAMES`).
        wanted: the Go type that was expected.
        note: a remark that the text has in parentheses, or "".
    """

    def __init__(self, found: str, wanted: str, note: str = "") -> None:
        super().__init__(None, wanted)
        self._found_type, self._note = found, f" ({note})" if note else ""

    def text(self, struct: str) -> str:
        """Return upstream's text.

        Args:
            struct: the Go name of the outermost struct, such as "v1.Pod".
        """
        field = self.outermost_field
        place = f"struct field {struct}.{field} of type {self.named}" if field else f"value of type {self.wanted}"
        return f"cbor: cannot unmarshal {self._found_type} into Go {place}{self._note}"


def decode_typed(data: bytes, node: SchemaNode, most_levels: int = MAX_DEPTH) -> tuple[Any, int | None]:
    """Return the value in `data` by its schema, without unknown fields, and the place of the first unknown field.

    The place is the index of the field in its map, by which strict decoding names it; None if all fields are known.

    Args:
        data: a well-formed data item, as `check_well_formed` checks.
        node: the schema of a struct.
        most_levels: the most levels of arrays, maps and tags.

    Raises:
        TypeMismatch: a value has a wrong type.
        InvalidError: a value is not acceptable, such as a duplicate member or a text that is not UTF-8.
    """
    reader = _TypedReader(data, most_levels)
    try:
        value, _ = reader.typed(0, 0, node)
    except (Mismatch, InvalidError):
        reader.check_duplicates()  # this error replaces others; of maps within the object, the first error is reported
        raise
    return value, reader.unknown


class _TypedReader(Reader):
    """A reader of the items of one document that knows their types.

    Attributes:
        unknown: the index, in its map, of the first unknown field; None while all fields are known.
    """

    def __init__(self, data: bytes, most_levels: int) -> None:
        super().__init__(data, most_levels)
        self.unknown: int | None = None

    def typed(self, at: int, later: int, node: SchemaNode) -> tuple[Any, int]:
        """Return the value of a type and the position after it.

        Args:
            at: the position of the item.
            later: the innermost tag 21 to 23 around it, or 0.
            node: the schema of the type.
        """
        name = node.definition.rpartition(".")[2]
        if name == "IntOrString":
            return self._int_or_string(*self._skip_tags(at, later), node)
        if name in _UNTYPED or name.startswith("JSONSchemaPropsOr") or not node.type:
            return self._untyped(at, later, name)
        at, later = self._skip_tags(at, later)
        major = self._data[at] >> 5
        if self._is_null(at, pointer=node.presence == "*" or name in _STRINGS):
            return None, at + 1
        if name in _STRINGS:
            return self._string_of(at, later)
        if node.type == "array":
            return self._list_of(at, later, node) if major == ARRAY else self._mismatch(at, go_type(node))
        if node.type == "object" and (node.properties or node.additional_properties is None):
            return self._struct_of(at, later, node)
        if node.type == "object":
            return self._map_of(at, later, node) if major == MAP else self._mismatch(at, go_type(node))
        if node.format == "byte":
            return self._bytes_of(at, later)
        if node.type == "string":
            return self._string_of(at, later)
        return self._scalar_of(at, node)

    def _is_null(self, at: int, *, pointer: bool) -> bool:
        """Return whether the item at a position is null, or `undefined`, which only pointers accept."""
        return self._data[at] == NULL or (pointer and self._data[at] == _UNDEFINED)

    def _mismatch(self, at: int, wanted: str, note: str = "") -> tuple[Any, int]:
        """Raise the error for the item at a position: a `TypeMismatch`, or an `InvalidError` for a simple value."""
        self.error = ""
        major, info, argument, end = read_head(self._data, at)
        if major == PRIMITIVE and info not in FLOATS:
            self._primitive(info, argument or 0, end)
            self._check()
        if major == NEGATIVE and argument is not None and argument >= _INT64:
            note = f"{-1 - argument} overflows Go's int64"
        raise TypeMismatch(TYPE_NAMES[major], wanted, note)

    def _check(self) -> None:
        """Raise the error of the item that was read last, if it is not acceptable."""
        if self.error:
            raise InvalidError(self.error)

    def _untyped(self, at: int, later: int, name: str) -> tuple[Any, int]:
        self.error = ""
        value, at = self.value(at, 0, later)
        if self.error and name == "FieldsV1":
            return None, at
        if self.error and name == "RawExtension":
            self.error = _RAW + self.error
        self._check()
        return value, at

    def _skip(self, at: int) -> int:
        """Return the position after an item, which is not read: nothing in it is an error.

        The loop of `check_well_formed` would take twice as long for nested items, because it checks each level.
        """
        data = self._data
        if size := SHORT_ITEMS[data[at]]:
            return at + size
        pending = 1  # the number of items to skip
        outer: list[int] = []  # those that remain after each item of indefinite length around the position
        while pending or outer:
            if not pending:
                if data[at] == BREAK:
                    pending = outer.pop()
                    at += 1
                    continue
                pending = 1
            pending -= 1
            if size := SHORT_ITEMS[data[at]]:  # most items are short
                at += size
                continue
            major, _, argument, at = read_head(data, at)
            if argument is None:
                outer.append(pending)
                pending = 0
            elif major in (BYTES, TEXT):
                at += argument
            elif major == ARRAY:
                pending += argument
            elif major == MAP:
                pending += 2 * argument
            elif major == TAG:
                pending += 1
        return at

    def _skip_tags(self, at: int, later: int) -> tuple[int, int]:
        """Return the position of the content of any tags, and the innermost tag 21 to 23 around it."""
        while self._data[at] >> 5 == TAG:
            _, _, tag, content = read_head(self._data, at)
            assert tag is not None  # a tag has no indefinite length
            self.error = ""
            self._check_time(tag, content)
            self._check()
            at, later = content, tag if tag in LATER_ENCODINGS else later
        return at, later

    def _struct_of(self, at: int, later: int, node: SchemaNode) -> tuple[dict[str, Any], int]:
        if (major := self._data[at] >> 5) != MAP:
            self._mismatch(at, go_type(node), _NO_ARRAY if major == ARRAY else "")
        _, _, size, at = read_head(self._data, at)
        obj: dict[str, Any] = {}
        unmatched: set[Any] = set()
        outer, self.unknown = self.unknown, None
        own: int | None = None
        index = 0
        while index < size if size is not None else self._data[at] != BREAK:
            key, at = self._name(at)
            field = node.properties.get(key) if isinstance(key, str) else None
            if key in obj or key in unmatched:
                raise InvalidError(_duplicate(key, index))
            if field is None:
                own = index if own is None else own
                unmatched.add(key)
                at = self._skip(at)
            else:
                try:
                    obj[key], at = self.typed(at, later, field)
                except Mismatch as mismatch:
                    mismatch.under(node.definition, key)
                    raise
            index += 1
        if own is None:
            own = self.unknown
        self.unknown = outer if outer is not None else own
        return obj, at if size is not None else at + 1

    def check_duplicates(self) -> None:
        """Check that no key occurs twice in the document, if it is a map. Its values are not read.

        Raises:
            InvalidError: a key occurs twice.
        """
        at, _ = self._skip_tags(0, 0)
        major, _, size, at = read_head(self._data, at)
        if major != MAP:
            return
        seen: set[Any] = set()
        index = 0
        while index < size if size is not None else self._data[at] != BREAK:
            end = self._skip(at)
            try:
                key, _ = self._name(at)
            except (Mismatch, InvalidError):  # it is not the name of a field
                key = None
            if key is not None and key in seen:
                raise InvalidError(_duplicate(key, index))
            seen.add(key)
            at = self._skip(end)
            index += 1

    def _name(self, at: int) -> tuple[Any, int]:
        """Return the key of a struct's map, a string or an integer, and the position after it."""
        head = self._data[at]
        major = head >> 5
        if major in (BYTES, TEXT) and head & 31 < 24:
            end = at + 1 + (head & 31)
            content = self._data[at + 1 : end]
            if major == BYTES or content.isascii():
                return content.decode("utf-8", BYTE_ERRORS), end
        if major in (BYTES, TEXT):
            self.error = ""
            key, at = self.value(at, 0, 0)
            self._check()
            return key, at
        if major in (UNSIGNED, NEGATIVE):
            _, _, argument, at = read_head(self._data, at)
            assert argument is not None
            if argument >= _INT64:
                minus = "-1-" if major == NEGATIVE else ""
                raise TypeMismatch(TYPE_NAMES[major], "int64", f"{minus}{argument} overflows Go's int64")
            return argument if major == UNSIGNED else -1 - argument, at
        note = f"map key is of type {TYPE_NAMES[major]} and cannot be used to match struct field name"
        raise TypeMismatch(TYPE_NAMES[major], "string", note)

    def _map_of(self, at: int, later: int, node: SchemaNode) -> tuple[dict[str, Any], int]:
        _, _, size, at = read_head(self._data, at)
        element = node.additional_properties
        assert element is not None
        obj: dict[str, Any] = {}
        index = 0
        while index < size if size is not None else self._data[at] != BREAK:
            at, key_later = self._skip_tags(at, later)
            key: str = ""
            if self._data[at] == NULL:
                at += 1
            else:
                key, at = self._string_of(at, key_later)
            value, at = self.typed(at, later, element)
            if key in obj:
                raise InvalidError(_duplicate(key, index))
            obj[key] = value
            index += 1
        return obj, at if size is not None else at + 1

    def _list_of(self, at: int, later: int, node: SchemaNode) -> tuple[list[Any], int]:
        _, _, size, at = read_head(self._data, at)
        assert node.items is not None
        items: list[Any] = []
        while len(items) < size if size is not None else self._data[at] != BREAK:
            item, at = self.typed(at, later, node.items)
            items.append(item)
        return items, at if size is not None else at + 1

    def _string_of(self, at: int, later: int) -> tuple[str, int]:
        if self._data[at] >> 5 not in (BYTES, TEXT):
            self._mismatch(at, "string")
        self.error = ""
        text, at = self.value(at, 0, later)
        self._check()
        return text, at

    def _bytes_of(self, at: int, later: int) -> tuple[Any, int]:
        """Return the base64 of a `[]byte`, or its bytes as a list of numbers, as JSON has them too."""
        major, _, size, after = read_head(self._data, at)
        if major == ARRAY:
            return self._untyped(at, later, "")
        if major != BYTES:
            return self._mismatch(at, "[]uint8")
        content, at = self.content(BYTES, size, after)
        if later:
            return b64encode(content).decode(), at
        text = content.decode("latin-1")
        try:
            decode_base64(text)
        except DecodeError as error:
            reason = f"cbor: failed to decode base64 from byte string: {error}"
            raise InvalidError(reason) from None
        return text, at

    def _int_or_string(self, at: int, later: int, node: SchemaNode) -> tuple[Any, int]:
        pointer = node.presence == "*"
        if self._is_null(at, pointer=pointer):
            return None if pointer else "", at + 1
        if self._data[at] >> 5 in (BYTES, TEXT):
            return self._string_of(at, later)
        return self._integer_of(at, "int32")

    def _scalar_of(self, at: int, node: SchemaNode) -> tuple[Any, int]:
        major, info, _, end = read_head(self._data, at)
        if node.type == "boolean":
            if self._data[at] in _BOOLEANS:
                return _BOOLEANS[self._data[at]], end
            return self._mismatch(at, "bool")
        if node.type == "integer":
            return self._integer_of(at, go_type(node))
        if major in (UNSIGNED, NEGATIVE) or (major == PRIMITIVE and info in FLOATS):
            return self._untyped(at, 0, "")
        return self._mismatch(at, go_type(node))

    def _integer_of(self, at: int, wanted: str) -> tuple[Any, int]:
        major, _, argument, end = read_head(self._data, at)
        if major not in (UNSIGNED, NEGATIVE):
            return self._mismatch(at, wanted)
        assert argument is not None
        number = argument if major == UNSIGNED else -1 - argument
        limit = _LIMITS.get(wanted, _INT64)
        if -limit <= number < limit:
            return number, end
        kept = "Go's int64" if number < -_INT64 else wanted
        raise TypeMismatch(TYPE_NAMES[major], wanted, f"{number} overflows {kept}")


def _duplicate(key: Any, index: int) -> str:
    shown = go_quote(key) if isinstance(key, str) else str(key)
    return f"cbor: found duplicate map key {shown} at map element index {index}"
