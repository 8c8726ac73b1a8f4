"""JSON patch (RFC 6902) with the liberties of evanphx/json-patch, which clients have come to rely on.

Called by the PATCH endpoint and by mutating webhooks and policies. `replace` of a missing member creates it, a `test` for
null passes where nothing is, an index may be negative, the text before the first `/` of a path is ignored.
Follows gopkg.in/evanphx/json-patch.v4/patch.go and k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.machinery.patch.goformat import json_kind
from tetrapod.machinery.status import StatusError, bad_request, request_entity_too_large

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024


class JSONPatchError(Exception):
    """An operation that does not apply, with evanphx's text (which the API server hides from its clients)."""


class TestFailed(JSONPatchError):
    """A `test` that found another value."""


def parse(body: Any) -> list[dict[str, Any]]:
    """Check the decoded body of a JSON patch request.

    Raises:
        StatusError: 400 where it is no list of operations, 413 where it is too long.
    """
    if body is None:
        return []
    if not isinstance(body, list):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {json_kind(body)} into Go value of type []handlers.jsonPatchOp")
    for operation in body:
        if operation is not None and not isinstance(operation, dict):
            kind = json_kind(operation)
            raise bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = (operation or {}).get(name)
            if value is not None and not isinstance(value, str):
                kind = json_kind(value)
                raise bad_request(
                    f"error decoding patch: json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{name} of type string"
                )
    if len(body) > MAX_OPERATIONS:
        raise request_entity_too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(body)}")
    return [operation or {} for operation in body]


def apply(document: Any, operations: Any) -> Any:
    """The patched document; the given one is left alone. `operations` is the decoded request body.

    Raises:
        StatusError: 400 and 413 as `parse`; 422 where an operation fails, whose cause upstream does not tell.
    """
    try:
        return apply_operations(document, parse(operations))
    except JSONPatchError as error:
        raise StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {}) from error


def apply_operations(document: Any, operations: list[dict[str, Any]]) -> Any:
    """As `apply`, for callers that want to know why it failed (webhooks, policies).

    Raises:
        JSONPatchError: an operation does not apply.
    """
    work = _Document(document)
    for operation in operations:
        work.run(operation)
    return work.root


class _Document:
    """The document being patched: containers are copied before their first change."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._owned: dict[int, Any] = {}
        self._copied_bytes = 0

    def run(self, operation: dict[str, Any]) -> None:
        kind = operation.get("op")
        match kind:
            case "add":
                self._add(operation)
            case "remove":
                path = _text(operation, "path", "remove")
                self._remove(path, f"error in remove for path: '{path}'", f'remove operation does not apply: doc is missing path: "{path}"')
            case "replace":
                self._replace(operation)
            case "move":
                self._move(operation)
            case "test":
                self._test(operation)
            case "copy":
                self._copy(operation)
            case _:
                raise JSONPatchError(f"Unexpected kind: {'unknown' if kind is None else kind}")

    def _add(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path", "add")
        self._insert(path, operation.get("value"), f'add operation does not apply: doc is missing path: "{path}"')

    def _insert(self, path: str, value: Any, missing: str, kind: str = "add") -> None:
        container, key = self._find(path, missing, write=True)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1, f"error in {kind} for path: '{path}'"), value)

    def _remove(self, path: str, failed: str, missing: str) -> None:
        container, key = self._find(path, missing, write=True)
        if isinstance(container, list):
            del container[_index(key, len(container), failed)]
        elif key not in container:
            raise JSONPatchError(f"{failed}: Unable to remove nonexistent key: {key}: missing value")
        else:
            del container[key]

    def _replace(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path", "replace")
        value = operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise JSONPatchError("replace operation value must be object or array")
            self.root = value
            return
        container, key = self._find(path, f"replace operation does not apply: doc is missing path: {path}", write=True)
        if isinstance(container, dict):
            container[key] = value
        else:
            try:
                index = _index(key, len(container), "")
            except JSONPatchError:
                raise JSONPatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from None
            container[index] = value

    def _move(self, operation: dict[str, Any]) -> None:
        source = _text(operation, "from", "move")
        value = self._get(source, "move operation does not apply: doc is missing from path: ", "error in move for path")
        key = _unescape(source.rpartition("/")[2])
        self._remove(source, f"error in move for path: '{key}'", f"move operation does not apply: doc is missing from path: {source}")
        path = _text(operation, "path", "move")
        self._insert(path, value, f"move operation does not apply: doc is missing destination path: {path}", "move")

    def _copy(self, operation: dict[str, Any]) -> None:
        source = _text(operation, "from", "copy")
        value = self._get(source, "copy operation does not apply: doc is missing from path: ", "error in copy for from")
        path = _text(operation, "path", "copy")
        missing = f"copy operation does not apply: doc is missing destination path: {path}"
        self._find(path, missing, write=False)
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
        wanted = operation.get("value")
        found = self.root if path == "" else self._get(path, "test operation does not apply: is missing path: ", "error in test for path")
        if not equal(found, wanted):
            raise TestFailed(f"testing value {path} failed: test failed")

    def _get(self, path: str, missing: str, failed: str) -> Any:
        """The value at a path; None where a member is missing, an error where an index is."""
        container, key = self._find(path, missing + path, write=False)
        if isinstance(container, dict):
            return container.get(key)
        return container[_index(key, len(container), f"{failed}: '{path}'")]

    def _find(self, path: str, missing: str, *, write: bool) -> tuple[Any, str]:
        """The container that a path's last token selects from, safe to change if `write`."""
        tokens = path.split("/")
        if len(tokens) < 2:
            raise JSONPatchError(f"{missing}: missing value")
        if write:
            self.root = self._own(self.root)
        container = self.root
        for token in map(_unescape, tokens[1:-1]):
            key: Any = token
            if isinstance(container, list):
                key = _index(token, len(container), missing)
            elif token not in container:
                raise JSONPatchError(f"{missing}: missing value")
            child = container[key]
            if not isinstance(child, dict | list):
                raise JSONPatchError(f"{missing}: missing value")
            if write:
                child = container[key] = self._own(child)
            container = child
        return container, _unescape(tokens[-1])

    def _own(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        mine = container.copy()
        # Kept alive on purpose: a freed container's id could be given to another one.
        self._owned[id(mine)] = mine
        return mine

    def _disown(self, value: Any) -> None:
        """It is in two places now: it is copied again before it changes in one of them."""
        if self._owned.pop(id(value), None) is not None:
            for child in value.values() if isinstance(value, dict) else value:
                self._disown(child)


def equal(left: Any, right: Any) -> bool:
    """Equality of JSON texts: 1 is neither 1.0 nor true."""
    if isinstance(left, dict):
        return isinstance(right, dict) and len(left) == len(right) and all(k in right and equal(v, right[k]) for k, v in left.items())
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and bool(left == right)


def _text(operation: dict[str, Any], name: str, kind: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        missing = "operation, missing from field" if name == "from" else f"operation missing {name} field"
        raise JSONPatchError(f"{kind} operation failed to decode {name}: {missing}: missing value")
    return value


def _index(token: str, length: int, failed: str) -> int:
    """A list index below `length`; negative ones count from there."""
    digits = token[1:] if token[:1] in ("-", "+") else token
    if not (digits.isascii() and digits.isdigit()):
        raise JSONPatchError(f"{failed}: value was not a proper array index: '{token}'")
    index = int(token)
    if not -length <= index < length:
        raise JSONPatchError(f"{failed}: Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index


def _unescape(token: str) -> str:
    if "~" not in token:
        return token
    # One pass from the left, as strings.NewReplacer does: "~01" is "~1", not "/".
    out, rest = "", token
    while rest:
        before, tilde, after = rest.partition("~")
        out += before
        if tilde and after[:1] in ("0", "1"):
            out += "~" if after[0] == "0" else "/"
            rest = after[1:]
        else:
            out += tilde
            rest = after
    return out
