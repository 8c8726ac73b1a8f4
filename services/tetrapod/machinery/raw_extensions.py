"""The fields of built-in objects that are a runtime.RawExtension, and their texts in stored objects.

Upstream stores the bytes of such a field as the client sent them. Here a stored object has the value of the field and,
if its text is another than that in the JSON of the stored object, the text in a field beside it: `data` and `dataText`.

A request has `Verbatim` values instead (serializer/raw_json.py), and clients do not see the fields with texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.serializer.raw_json import (
    EACH,
    RawPath,
    Verbatim,
    stored_text,
    verbatim,
    with_compact_text,
    with_go_text,
)

_DEVICES: Final = "resource.k8s.io"
_PARAMETERS: Final = (EACH, "opaque", "parameters")
CLASS_PARAMETERS: Final[RawPath] = ("spec", "config", *_PARAMETERS)
CLAIM_PARAMETERS: Final[RawPath] = ("spec", "devices", "config", *_PARAMETERS)
TEMPLATE_PARAMETERS: Final[RawPath] = ("spec", "spec", "devices", "config", *_PARAMETERS)
ALLOCATION_PARAMETERS: Final[RawPath] = ("status", "allocation", "devices", "config", *_PARAMETERS)
RAW_EXTENSIONS: Final[Mapping[GroupKind, Sequence[RawPath]]] = {
    GroupKind("apps", "ControllerRevision"): (("data",),),
    GroupKind(_DEVICES, "DeviceClass"): (CLASS_PARAMETERS,),
    GroupKind(_DEVICES, "ResourceClaim"): (
        CLAIM_PARAMETERS,
        ALLOCATION_PARAMETERS,
        ("status", "devices", EACH, "data"),
    ),
    GroupKind(_DEVICES, "ResourceClaimTemplate"): (TEMPLATE_PARAMETERS,),
}
"""The paths of the fields, which are the same in all versions of a kind."""
_TEXT: Final = "Text"


def raw_paths(group: str, kind: str) -> Sequence[RawPath]:
    """Return the paths of the RawExtension fields of a built-in kind; empty for other kinds."""
    return RAW_EXTENSIONS.get(GroupKind(group, kind), ())


def may_have_texts(raw: bytes, paths: Sequence[RawPath]) -> bool:
    """Return False if a stored object certainly has no texts beside its fields, so that it need not be parsed.

    Args:
        raw: its JSON.
        paths: the paths of the fields.
    """
    return any(b'"%b%b":' % (path[-1].encode(), _TEXT.encode()) in raw for path in paths)


def beside_fields(obj: Object, paths: Sequence[RawPath]) -> Object:
    """Return the stored form of an object: with the texts of `Verbatim` values beside them.

    `obj` is not modified. The result shares with it what is equal, and is `obj` itself if it has no such values.
    """
    for path in paths:
        obj = _beside(obj, path)
    return obj


def _beside(value: Any, path: RawPath) -> Any:
    step, rest = path[0], path[1:]
    if step == EACH:
        items = [_beside(item, rest) for item in value] if isinstance(value, list) else []
        return items if any(item is not old for item, old in zip(items, value or (), strict=False)) else value
    child = value.get(step) if isinstance(value, dict) else None
    if not rest:
        return {**value, step + _TEXT: child.text} if isinstance(child, Verbatim) else value
    changed = _beside(child, rest)
    return value if changed is child else {**value, step: changed}


def into_fields(obj: Object, paths: Sequence[RawPath]) -> bool:
    """Make the fields that have a text beside them `Verbatim`, and remove the texts, in place.

    Return whether there were texts.
    """
    had_texts = False
    for owner, name in _places(obj, paths):
        text = owner.pop(name + _TEXT, None)
        had_texts = had_texts or text is not None
        if isinstance(text, str) and isinstance(owner.get(name), dict):
            owner[name] = verbatim(owner[name], text)
    return had_texts


def fields_at(obj: Object, paths: Sequence[RawPath]) -> list[Any]:
    """Return the values of the fields at these paths, with None for an unset field."""
    return [owner.get(name) for owner, name in _places(obj, paths)]


def same_texts(new: Object, old: Object, path: RawPath) -> bool:
    """Return whether the fields at a path have the same texts in two objects, so also members in the same order."""
    texts = [list(map(stored_text, fields_at(obj, (path,)))) for obj in (new, old)]
    return texts[0] == texts[1]


def put_fields(obj: Object, paths: Sequence[RawPath], values: Sequence[Any]) -> None:
    """Set the fields at these paths to the values that `fields_at` has returned for an equal object, in place."""
    for (owner, name), value in zip(_places(obj, paths), values, strict=True):
        if value is not None:
            owner[name] = value


def forget_texts(obj: Object, paths: Sequence[RawPath], *, compact: bool = False) -> None:
    """Replace the texts of `Verbatim` values by those of Go's encoder, in place.

    Args:
        obj: the stored object, of which a patch encodes the whole again.
        paths: the paths of the fields.
        compact: whether Go encodes the text, without white space, and not the value, with other numbers.
    """
    for owner, name in _places(obj, paths):
        if isinstance(value := owner.get(name), Verbatim):
            owner[name] = with_compact_text(value) if compact else dict(value)


def add_go_texts(obj: Object, paths: Sequence[RawPath], *, sent: bool) -> None:
    """Make the fields without a text `Verbatim` where Go would give them another text than ours, in place.

    Args:
        obj: the object.
        paths: the paths of the fields.
        sent: whether Go keeps numbers in them as the client has sent them, instead of encoding them again.
    """
    for owner, name in _places(obj, paths):
        if isinstance(value := owner.get(name), dict):
            owner[name] = with_go_text(value, sent=sent)


def _places(obj: Object, paths: Sequence[RawPath]) -> Iterator[tuple[Object, str]]:
    """Yield the object that has, or may have, each field at these paths, with the name of the field."""
    for path in paths:
        for owner in _owners(obj, path[:-1]):
            yield owner, path[-1]


def _owners(value: Any, path: RawPath) -> Iterator[Object]:
    if not path:
        if isinstance(value, dict):
            yield value
    elif path[0] == EACH:
        for item in value if isinstance(value, list) else ():
            yield from _owners(item, path[1:])
    elif isinstance(value, dict):
        yield from _owners(value.get(path[0]), path[1:])
