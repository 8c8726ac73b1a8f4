"""Strategic merge patch: merging by what a type's schema says about its lists and maps.

Called by the PATCH endpoint for built-in types. Maps merge; a list is replaced unless its field has the strategy `merge`,
then maps merge by their merge key and primitives as a set (`ordered_lists.py`). Directives: `$patch`, `$retainKeys`,
`$setElementOrder/F`, `$deleteFromPrimitiveList/F`. Follows k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.patch import ordered_lists
from tetrapod.machinery.patch.goformat import json_kind, plain, type_name
from tetrapod.machinery.patch.mergepatch_errors import (
    BAD_PRIMITIVE_LIST,
    BAD_RETAIN_KEYS,
    BAD_SET_ELEMENT_ORDER,
    NO_LISTS_OF_LISTS,
    bad_argument_type,
    bad_patch_type,
    no_merge_key,
    refusal,
)
from tetrapod.machinery.shapes.node import SchemaNode
from tetrapod.machinery.status import bad_request

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_PREFIX: Final = "$deleteFromPrimitiveList"
ORDER_PREFIX: Final = "$setElementOrder"


def parse(body: Any) -> Object:
    """Check the decoded body of a strategic merge patch request; null is an empty patch.

    Raises:
        StatusError: 400, it is no object.
    """
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise bad_request(f"json: cannot unmarshal {json_kind(body)} into Go value of type map[string]interface {{}}")
    return body


def apply(original: Object, patch: Any, node: SchemaNode) -> Object:
    """The merged object; `original` is left alone, of `patch` remains what upstream shows of it in a refusal of the outcome.

    Raises:
        StatusError: 400 or 422, the patch misuses a directive or a merge list.
    """
    return _merge_maps(original, parse(patch), node)


def _merge_maps(original: Object, patch: Object, node: SchemaNode | None) -> Object:
    if DIRECTIVE in patch:
        return _whole_map_directive(patch)
    merged = dict(original)
    _retain_keys(merged, patch)
    for key in [k for k in patch if k.startswith(ORDER_PREFIX)]:
        _set_element_order(merged, patch, key, node)
    for key, value in patch.items():
        if key.startswith(DELETE_PREFIX):
            name = _field_of(key, DELETE_PREFIX)
            if value is None:
                merged.pop(name, None)
            elif isinstance(merged.get(name), list) and isinstance(value, list):
                child, _, merge_key = _child(node, name)
                merged[name] = _merge_lists(merged[name], value, child, merge_key, deleting=True)
        elif value is None:
            merged.pop(key, None)
        else:
            _merge_field(merged, key, value, node)
    return merged


def _whole_map_directive(patch: Object) -> Object:
    match patch[DIRECTIVE]:
        case "replace":
            del patch[DIRECTIVE]
            return patch
        case "delete":
            return {}
        case other:
            raise bad_patch_type(other, patch)


def _merge_field(merged: Object, key: str, value: Any, node: SchemaNode | None) -> None:
    old = merged.get(key)
    if isinstance(old, dict) and isinstance(value, dict):
        child, strategy, _ = _child(node, key)
        merged[key] = value if strategy == "replace" else _merge_maps(old, value, child)
    elif isinstance(old, list) and isinstance(value, list):
        child, strategy, merge_key = _child(node, key)
        merged[key] = _merge_lists(old, value, child, merge_key) if strategy == "merge" else value
    elif _is_directive(value):
        merged.pop(key, None)
    else:
        merged[key] = _clean(value)


def _merge_lists(original: list[Any], patch: list[Any], node: SchemaNode | None, merge_key: str, *, deleting: bool = False) -> list[Any]:
    """Merge two lists of one kind of element, in the order of the patch, then of the original."""
    if not original and not patch:
        return original
    if not _element_is_map(original, patch):
        if deleting:
            drop = ordered_lists.keys_of(patch)
            return [v for v in original if ordered_lists.identity(v) not in drop]
        merged = ordered_lists.distinct([*original, *patch])
        return ordered_lists.in_order(merged, wanted=patch, live=original, merge_key=merge_key, of_maps=False)
    if not merge_key:
        raise refusal("cannot merge lists without merge key for struct")
    original, patch = _list_directives(original, patch, merge_key)
    merged = _merge_elements(original, patch, merge_key, node)
    return ordered_lists.in_order(merged, wanted=patch, live=original, merge_key=merge_key, of_maps=True)


def _list_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Carry out `$patch: delete` and `$patch: replace` elements; the two lists that are left to merge."""
    kept: list[Any] = []
    replace = False
    for element in patch:
        if DIRECTIVE not in element:
            kept.append(element)
            continue
        match element[DIRECTIVE]:
            case "delete":
                if merge_key not in element:
                    raise no_merge_key(element, merge_key)
                gone = ordered_lists.identity(element[merge_key])
                original = [v for v in original if merge_key not in v or ordered_lists.identity(v[merge_key]) != gone]
            case "replace":
                replace = True
            case "merge":
                raise refusal("merging lists cannot yet be specified in the patch")
            case other:
                raise bad_patch_type(other, element)
    return (kept, []) if replace else (original, kept)


def _merge_elements(original: list[Any], patch: list[Any], merge_key: str, node: SchemaNode | None) -> list[Any]:
    merged = list(original)
    places: dict[Any, int] = {}
    for i, element in enumerate(merged):
        if merge_key in element:
            places.setdefault(ordered_lists.identity(element[merge_key]), i)
    for element in patch:
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        place = places.setdefault(ordered_lists.identity(element[merge_key]), len(merged))
        if place < len(merged):
            merged[place] = _merge_maps(merged[place], element, node)
        else:
            merged.append(element)
    return merged


def _retain_keys(merged: Object, patch: Object) -> None:
    if RETAIN_KEYS not in patch:
        return
    listed = patch.pop(RETAIN_KEYS)
    if not isinstance(listed, list):
        raise BAD_RETAIN_KEYS()
    retained = {v for v in listed if isinstance(v, str)}
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_PREFIX, ORDER_PREFIX)) and key not in retained:
            raise BAD_RETAIN_KEYS()
    for key in [k for k in merged if k not in retained]:
        del merged[key]


def _set_element_order(merged: Object, patch: Object, key: str, node: SchemaNode | None) -> None:
    """Merge the list that `$setElementOrder/F` orders, and take both out of the patch."""
    order = patch.pop(key)
    if not isinstance(order, list):
        raise bad_argument_type("[]interface {}", type_name(order))
    name = _field_of(key, ORDER_PREFIX)
    original, changes = merged.get(name), patch.get(name)
    for value, present in ((original, name in merged), (changes, name in patch)):
        if present and not isinstance(value, list):
            raise bad_argument_type("[]interface {}", type_name(value))
    child, strategy, merge_key = _child(node, name)
    _check_order(changes or [], order, merge_key)
    if name in merged and name in patch:
        both = _merge_lists(merged[name], patch[name], child, merge_key) if strategy == "merge" else patch[name]
    elif name in patch:
        both = _without_directives(patch[name])
    elif name in merged:
        both = merged[name]
    else:
        return
    if not original and not changes:
        raise refusal("no elements in any of the given slices")
    of_maps = _element_is_map(original or [], changes or [])
    merged[name] = ordered_lists.in_order(both, wanted=order, live=original or [], merge_key=merge_key, of_maps=of_maps)
    patch.pop(name, None)


def _check_order(changes: list[Any], order: list[Any], merge_key: str) -> None:
    """The patch's elements must be among those of the order list, and in that order."""
    if not order or not changes:
        return
    left = [c for c in changes if not (_is_directive(c) and c[DIRECTIVE] == "delete")] if merge_key else changes
    i = j = 0
    while i < len(left) and j < len(order):
        if _is_directive(left[i]):
            i += 1
            continue
        if _merge_value(left[i], merge_key) == _merge_value(order[j], merge_key):
            i += 1
        j += 1
    if i < len(left):
        raise refusal(f"The order in patch list:\n{plain(changes)}\n doesn't match {ORDER_PREFIX} list:\n{plain(order)}\n")


def _merge_value(element: Any, merge_key: str) -> Any:
    if not merge_key:
        return ordered_lists.identity(element)
    if not isinstance(element, dict):
        raise bad_argument_type("map[string]interface {}", type_name(element))
    if merge_key not in element:
        raise no_merge_key(element, merge_key)
    return ordered_lists.identity(element[merge_key])


def _child(node: SchemaNode | None, name: str) -> tuple[SchemaNode | None, str, str]:
    """The node of a field (of its items, if it is a list), its strategy other than retainKeys, and its merge key."""
    if node is None:
        return None, "", ""
    found = node.properties.get(name)
    if found is None:
        if node.properties or node.additional_properties is None:
            owner = node.definition.rpartition(".")[2]
            raise refusal(f'unable to find api field in struct {owner} for the json field "{name}"')
        raise refusal("merging an object in json but data type is not struct, instead is: map")
    strategy = next((s for s in found.patch_strategy if s != "retainKeys"), "")
    return (found.items if found.items is not None else found), strategy, found.patch_merge_key


def _field_of(key: str, prefix: str) -> str:
    directive, slash, name = key.partition("/")
    if not slash or directive != prefix:
        raise BAD_PRIMITIVE_LIST() if prefix == DELETE_PREFIX else BAD_SET_ELEMENT_ORDER()
    return name


def _element_is_map(*lists: list[Any]) -> bool:
    """Whether lists hold maps; all elements must be of one type, and not lists."""
    names = {type_name(v): None for elements in lists for v in elements}
    if next(iter(names), "") == "[]interface {}":
        raise NO_LISTS_OF_LISTS()
    if len(names) > 1 or "<nil>" in names:
        raise refusal(f"list element types are not identical: {plain(list(lists))}")
    return "map[string]interface {}" in names


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _clean(value: Any) -> Any:
    """A new field's value: without its null members and without elements and members that are directives."""
    _drop_nulls(value)
    return _without_directives(value)


def _drop_nulls(value: Any) -> None:
    if isinstance(value, list):
        for element in value:
            _drop_nulls(element)
    elif isinstance(value, dict):
        for name, member in list(value.items()):
            if member is None:
                del value[name]
            else:
                _drop_nulls(member)


def _without_directives(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_directives(v) for v in value if not _is_directive(v)]
    if isinstance(value, dict):
        for name, member in list(value.items()):
            if _is_directive(member):
                del value[name]
            else:
                value[name] = _without_directives(member)
    return value
