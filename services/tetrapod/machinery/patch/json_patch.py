"""JSON patch (RFC 6902) with the deviations of evanphx/json-patch, on which clients rely.

The PATCH endpoint, mutating webhooks and mutating policies call it. These are the deviations:
- `replace` of a missing member creates it.
- A `test` for null passes if the member is missing.
- An index may be negative.
- The text before the first `/` of a path is ignored.

Upstream: gopkg.in/evanphx/json-patch.v4/patch.go and k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from tetrapod.machinery.depth import TooDeepError, ensure_depth, is_depth_error
from tetrapod.machinery.golang.formatting import json_kind
from tetrapod.machinery.patch.chunked_lists import PIECE, Pieces
from tetrapod.machinery.status import StatusError, bad_request, request_entity_too_large

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
_LONG: Final = 2 * PIECE
"""The length from which on a list is modified in pieces."""
_ESCAPED: Final = re.compile("~([01])")
_MAX_DIGITS: Final = 18
"""The maximum number of digits of an index. Go's Atoi fails beyond 64 bits, Python beyond 4,300 digits."""


class JSONPatchError(Exception):
    """The error for an operation that cannot be applied.

    The text is that of evanphx/json-patch, which the API server does not show to its clients.
    """


class TestFailed(JSONPatchError):
    """The error for a `test` operation that finds a different value."""


def parse(body: Any) -> list[dict[str, Any]]:
    """Validate the decoded body of a JSON patch request and return its operations; [] for null.

    Raises:
        StatusError: 400 if it is not a list of operations, 413 if it has too many.
    """
    if body is None:
        return []
    if not isinstance(body, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(body)} into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    for operation in body:
        if operation is not None and not isinstance(operation, dict):
            kind = json_kind(operation)
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp"
            )
        for name in ("op", "path", "from"):
            value = (operation or {}).get(name)
            if value is not None and not isinstance(value, str):
                kind = json_kind(value)
                raise bad_request(
                    f"error decoding patch: json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{name} of "
                    "type string"
                )
    if len(body) > MAX_OPERATIONS:
        raise request_entity_too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(body)}"
        )
    return [operation or {} for operation in body]


def apply(document: Any, operations: Any) -> Any:
    """Return the patched document. The given one is not modified.

    Args:
        document: the decoded object.
        operations: the decoded body of the request.

    Raises:
        StatusError: 400 if the body is not a list of operations, 413 if it has too many, 422 if one fails. Like
            upstream, the 422 does not tell the cause.
    """
    try:
        return apply_operations(document, parse(operations))
    except JSONPatchError as error:
        raise StatusError(
            422, "Invalid", "the server rejected our request due to an error in our request", {}
        ) from error


def apply_operations(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Return the patched document, for callers that report the cause of a failure (webhooks, policies).

    The given document is not modified, but the result may share parts of it.

    Args:
        document: the decoded object.
        operations: the operations, whose fields are of the right types (`parse`).

    Raises:
        JSONPatchError: an operation cannot be applied, or the result is nested too deeply.
    """
    work = _Document(document)
    try:
        for operation in operations:
            work.run(operation)
        patched = work.finish()
        if operations:
            ensure_depth(patched)
    except (RecursionError, TypeError, TooDeepError) as error:
        if is_depth_error(error):
            raise JSONPatchError("exceeded max depth") from None
        raise
    return patched


class _Document:
    """A document being patched. Objects and lists are copied before their first change.

    After its first insertion or removal, a long list is held as `Pieces`, until it is copied or the patch is complete.
    Only then is the list in the document updated.

    Args:
        root: the decoded object, which is not modified.
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self._owned: dict[int, Any] = {}
        self._in_pieces: dict[int, tuple[list[Any], Pieces]] = {}
        self._copied_bytes = 0

    def finish(self) -> Any:
        """Update all lists that are held as `Pieces`, and return the document."""
        for elements, pieces in self._in_pieces.values():
            elements[:] = pieces
        self._in_pieces.clear()
        return self.root

    def run(self, operation: dict[str, Any]) -> None:
        """Apply one operation.

        Raises:
            JSONPatchError: the operation cannot be applied.
        """
        kind = operation.get("op")
        match kind:
            case "add":
                self._add(operation)
            case "remove":
                path = _path(operation, "remove")
                self._remove(
                    path,
                    f"error in remove for path: '{path}'",
                    f'remove operation does not apply: doc is missing path: "{path}"',
                )
            case "replace":
                self._replace(operation)
            case "move":
                self._move(operation)
            case "test":
                self._test(operation)
            case "copy":
                self._copy(operation)
            case _:
                raise JSONPatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")

    def _add(self, operation: dict[str, Any]) -> None:
        path = _path(operation, "add")
        self._insert(path, operation.get("value"), f'add operation does not apply: doc is missing path: "{path}"')

    def _insert(self, path: str, value: Any, missing: str, kind: str = "add") -> None:
        container, key = self._find(path, missing, write=True)
        if isinstance(container, dict):
            container[key] = value
            return
        elements = self._changing(container)
        if key == "-":
            elements.append(value)
        else:
            elements.insert(_index(key, len(elements) + 1, f"error in {kind} for path: '{path}'"), value)

    def _remove(self, path: str, failed: str, missing: str) -> None:
        container, key = self._find(path, missing, write=True)
        if isinstance(container, list):
            elements = self._changing(container)
            del elements[_index(key, len(elements), failed)]
        elif key not in container:
            raise JSONPatchError(f"{failed}: Unable to remove nonexistent key: {key}: missing value")
        else:
            del container[key]

    def _replace(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path", "replace")
        value = operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise JSONPatchError("replace operation value must be object or array: %!w(<nil>)")
            self.root = value
            return
        container, key = self._find(path, f"replace operation does not apply: doc is missing path: {path}", write=True)
        if isinstance(container, dict):
            container[key] = value
        else:
            elements = self._elements(container)
            try:
                index = _index(key, len(elements), "")
            except JSONPatchError:
                raise JSONPatchError(
                    f"replace operation does not apply: doc is missing key: {path}: missing value"
                ) from None
            elements[index] = value

    def _move(self, operation: dict[str, Any]) -> None:
        source = _text(operation, "from", "move")
        value = self._get(source, "move operation does not apply: doc is missing from path: ", "error in move for path")
        key = _unescape(source.rpartition("/")[2])
        self._remove(
            source,
            f"error in move for path: '{key}'",
            f"move operation does not apply: doc is missing from path: {source}",
        )
        path = _text(operation, "path", "move")
        self._insert(path, value, f"move operation does not apply: doc is missing destination path: {path}", "move")

    def _copy(self, operation: dict[str, Any]) -> None:
        source = _text(operation, "from", "copy")
        value = self._get(source, "copy operation does not apply: doc is missing from path: ", "error in copy for from")
        path = _path(operation, "copy")
        missing = f"copy operation does not apply: doc is missing destination path: {path}"
        self._find(path, missing, write=False)
        self._put_together(value)
        self._copied_bytes += len(orjson.dumps(value))
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise JSONPatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied_bytes}, "
                f"exceeding the limit {MAX_COPIED_BYTES}"
            )
        self._disown(value)
        self._insert(path, value, missing)

    def _test(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path", "test")
        expected = operation.get("value")
        actual = (
            self.root
            if path == ""
            else self._get(path, "test operation does not apply: is missing path: ", "error in test for path")
        )
        if not self._equal(actual, expected):
            raise TestFailed(f"testing value {path} failed: test failed")

    def _get(self, path: str, missing: str, failed: str) -> Any:
        """Return the value at a path, or None if the object there has no such member.

        Args:
            path: the JSON pointer of an operation, such as `/spec/replicas`.
            missing: the error text for a container on the path that does not exist; the path is appended.
            failed: the error text for an index that does not exist.

        Raises:
            JSONPatchError: a container on the path, or the index, does not exist.
        """
        container, key = self._find(path, missing + path, write=False)
        if isinstance(container, dict):
            return container.get(key)
        elements = self._elements(container)
        return elements[_index(key, len(elements), f"{failed}: '{path}'")]

    def _find(self, path: str, missing: str, *, write: bool) -> tuple[Any, str]:
        """Return the object or list that contains the last part of a path, and that part without escapes.

        Args:
            path: the JSON pointer of an operation, such as `/spec/replicas`.
            missing: the error text for a container that does not exist.
            write: whether the caller may modify the container; it and those above it are then copied if necessary.

        Raises:
            JSONPatchError: the path does not lead to an object or list.
        """
        tokens = path.split("/")
        if len(tokens) < 2:
            raise JSONPatchError(f"{missing}: missing value")
        if write:
            self.root = self._own(self.root)
        container = self.root
        for token in map(_unescape, tokens[1:-1]):
            key: Any = token
            members = container
            if isinstance(container, list):
                members = self._elements(container)
                try:
                    key = _index(token, len(members), "")
                except JSONPatchError:
                    raise JSONPatchError(f"{missing}: missing value") from None
            elif token not in container:
                raise JSONPatchError(f"{missing}: missing value")
            child = members[key]
            if not isinstance(child, dict | list):
                raise JSONPatchError(f"{missing}: missing value")
            if write:
                child = members[key] = self._own(child)
            container = child
        return container, _unescape(tokens[-1])

    def _own(self, container: Any) -> Any:
        """Return an object or list that may be modified: itself if it is a copy already, else a shallow copy.

        The caller must then replace `container` in the document by it.
        """
        if id(container) in self._owned:
            return container
        owned_copy = container.copy()
        # The copy must stay referenced: otherwise its id could be reused for another container.
        self._owned[id(owned_copy)] = owned_copy
        return owned_copy

    def _disown(self, value: Any) -> None:
        """Mark a value that the document now contains twice, so that it is copied before one of the two is changed."""
        if self._owned.pop(id(value), None) is not None:
            for child in value.values() if isinstance(value, dict) else value:
                self._disown(child)

    def _elements(self, container: list[Any]) -> list[Any] | Pieces:
        """Return the elements of a list: its `Pieces`, if it was long when its length changed, else the list itself."""
        held = self._in_pieces.get(id(container))
        return container if held is None else held[1]

    def _changing(self, container: list[Any]) -> list[Any] | Pieces:
        """Return the elements of a list whose length is about to change.

        A long list is held as `Pieces` from now on.
        """
        elements = self._elements(container)
        if isinstance(elements, list) and len(elements) >= _LONG:
            elements = Pieces(container)
            # also referenced by `_owned`, so that the id is not reused
            self._in_pieces[id(container)] = (container, elements)
        return elements

    def _put_together(self, value: Any) -> None:
        """Write the elements of all `Pieces` within a value back to the lists from which they were made.

        Parts of the value that were not copied for this patch are not visited, because only copied lists become
        `Pieces`.
        """
        if id(value) not in self._owned:
            return
        if (held := self._in_pieces.pop(id(value), None)) is not None:
            value[:] = held[1]
        for child in value.values() if isinstance(value, dict) else value:
            self._put_together(child)

    def _equal(self, left: Any, right: Any) -> bool:
        """Return whether two values are the same JSON: 1 differs from 1.0 and from true."""
        if isinstance(left, dict):
            same_keys = isinstance(right, dict) and len(left) == len(right)
            return same_keys and all(key in right and self._equal(value, right[key]) for key, value in left.items())
        if isinstance(left, list):
            elements = self._elements(left)
            return isinstance(right, list) and len(elements) == len(right) and all(map(self._equal, elements, right))
        return type(left) is type(right) and bool(left == right)


def _path(operation: dict[str, Any], kind: str) -> str:
    """Return the path of an operation that does not tell why it has none."""
    path = operation.get("path")
    if not isinstance(path, str):
        raise JSONPatchError(f"{kind} operation failed to decode path: missing value")
    return path


def _text(operation: dict[str, Any], name: str, kind: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        missing = "operation, missing from field" if name == "from" else f"operation missing {name} field"
        raise JSONPatchError(f"{kind} operation failed to decode {name}: {missing}: missing value")
    return value


def _index(token: str, length: int, failed: str) -> int:
    """Return a list index from 0 to `length` - 1. Negative indexes of the path count from the end.

    Args:
        token: the last part of a path.
        length: the number of indexes that are allowed.
        failed: the beginning of the error text.

    Raises:
        JSONPatchError: the text is not an index, or is out of range.
    """
    digits = token[1:] if token[:1] in ("-", "+") else token
    if not (digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= _MAX_DIGITS):
        raise JSONPatchError(f"{failed}: value was not a proper array index: '{token}'")
    index = int(token)
    if not -length <= index < length:
        raise JSONPatchError(f"{failed}: Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index


def _unescape(token: str) -> str:
    """Replace `~0` by `~` and `~1` by `/` in one pass from the left, as Go's strings.NewReplacer does.

    So "~01" becomes "~1", not "/".
    """
    return _ESCAPED.sub(lambda escaped: "~" if escaped[1] == "0" else "/", token) if "~" in token else token
