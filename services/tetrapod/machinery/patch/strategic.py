"""Strategic merge patch: merging as the schema of a type specifies for its lists and maps.

The PATCH endpoint calls it for built-in types. Maps are merged. A list is replaced unless its field has the strategy
`merge`: then maps are merged by their merge key, and primitives as a set (`ordered_lists.py`). Directives are `$patch`,
`$retainKeys`, `$setElementOrder/F` and `$deleteFromPrimitiveList/F`, where F is a field.

Upstream: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from tetrapod.machinery.golang.formatting import json_kind, plain, type_name
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.patch import ordered_lists
from tetrapod.machinery.patch.mergepatch_errors import (
    BAD_PRIMITIVE_LIST,
    BAD_RETAIN_KEYS,
    BAD_SET_ELEMENT_ORDER,
    bad_argument_type,
    bad_patch,
    bad_patch_type,
    no_lists_of_lists,
    no_merge_key,
)
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import bad_request, request_entity_too_large

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_PREFIX: Final = "$deleteFromPrimitiveList"
ORDER_PREFIX: Final = "$setElementOrder"
MAX_REPEATED_STEPS: Final = 200_000
"""List elements and map members that are merged once more because several elements of a patch have one merge key, up to
6 µs each. Real patches repeat a merge key for small elements only (a port of TCP and of UDP). Thousands of elements
that each merge one list again take quadratic time; upstream has no limit.
"""


class _Steps:
    """The budget that limits how often one strategic merge patch merges the same elements again.

    If several elements of a patch have the same merge key, each merges the stored element once more. Only these steps
    are counted; the size of the body limits all others.

    Args:
        left: a list with the remaining number of steps, shared by the `_Steps` of one patch. None means that the steps
            of this object are not counted.
    """

    def __init__(self, left: list[int] | None = None) -> None:
        self._charged = left is not None
        self._left = [MAX_REPEATED_STEPS] if left is None else left

    def repeated(self) -> _Steps:
        """Return a `_Steps` with the same budget whose steps are counted, for merging an element once more."""
        return _Steps(self._left)

    def spend(self, count: int) -> None:
        """Subtract steps from the budget, if the steps of this object are counted.

        Raises:
            StatusError: 413 if the budget is exhausted.
        """
        if self._charged:
            self._left[0] -= count
            if self._left[0] < 0:
                raise request_entity_too_large("the strategic merge patch merges the same elements too many times")


def parse(body: Any) -> Object:
    """Validate the decoded body of a strategic merge patch request and return it. Null is an empty patch.

    Raises:
        StatusError: 400 if it is not an object.
    """
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise bad_request(f"json: cannot unmarshal {json_kind(body)} into Go value of type map[string]interface {{}}")
    return body


def apply(original: Object, patch: Any, node: SchemaNode) -> Object:
    """Return the merged object. `original` is not modified.

    Args:
        original: the existing object.
        patch: the decoded body. It is modified: applied directives are removed from it, because upstream shows only the
            rest in an error about the merged object.
        node: the schema of the kind.

    Raises:
        StatusError: 400 or 422 if the patch misuses a directive or a merge list; 413 if it takes too many steps.
    """
    return _merge_maps(original, parse(patch), node, _Steps())


def _merge_maps(original: Object, patch: Object, node: SchemaNode | None, steps: _Steps) -> Object:
    if DIRECTIVE in patch:
        return _whole_map_directive(patch)
    steps.spend(len(original))
    merged = dict(original)
    _retain_keys(merged, patch)
    for key in [k for k in patch if k.startswith(ORDER_PREFIX)]:
        _set_element_order(merged, patch, key, node, steps)
    for key, value in patch.items():
        if key.startswith(DELETE_PREFIX):
            name = _field_of(key, DELETE_PREFIX)
            if value is None:
                merged.pop(name, None)
            elif isinstance(merged.get(name), list) and isinstance(value, list):
                child, _, merge_key = _child(node, name)
                merged[name] = _merge_lists(merged[name], value, child, merge_key, steps, deleting=True)
        elif value is None:
            merged.pop(key, None)
        else:
            _merge_field(merged, key, value, node, steps)
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


def _merge_field(merged: Object, key: str, value: Any, node: SchemaNode | None, steps: _Steps) -> None:
    existing = merged.get(key)
    if isinstance(existing, dict) and isinstance(value, dict):
        child, strategy, _ = _child(node, key)
        merged[key] = value if strategy == "replace" else _merge_maps(existing, value, child, steps)
    elif isinstance(existing, list) and isinstance(value, list):
        child, strategy, merge_key = _child(node, key)
        merged[key] = _merge_lists(existing, value, child, merge_key, steps) if strategy == "merge" else value
    elif _is_directive(value):
        merged.pop(key, None)
    else:
        merged[key] = _clean(value)


def _merge_lists(
    original: list[Any],
    patch: list[Any],
    node: SchemaNode | None,
    merge_key: str,
    steps: _Steps,
    *,
    deleting: bool = False,
) -> list[Any]:
    """Merge two lists with elements of one kind, in the order of the patch and then of the original.

    Args:
        original: the existing list.
        patch: the list of the patch.
        node: the schema of the elements.
        merge_key: the field that identifies elements which are maps.
        steps: the budget of repeated steps.
        deleting: whether the patch lists primitives to delete.

    Raises:
        StatusError: 400, 413 or 422 if the lists cannot be merged.
    """
    if not original and not patch:
        return original
    steps.spend(len(original) + len(patch))
    if not _element_is_map(original, patch):
        if deleting:
            deleted = ordered_lists.keys_of(patch)
            return [v for v in original if ordered_lists.identity(v) not in deleted]
        merged = ordered_lists.distinct([*original, *patch])
        return ordered_lists.in_order(merged, wanted=patch, live=original, merge_key=merge_key, of_maps=False)
    if not merge_key:
        raise bad_patch(f"cannot merge lists without merge key for {_element_kind(node)}")
    original, patch = _list_directives(original, patch, merge_key)
    merged = _merge_elements(original, patch, merge_key, node, steps)
    return ordered_lists.in_order(merged, wanted=patch, live=original, merge_key=merge_key, of_maps=True)


def _element_kind(node: SchemaNode | None) -> str:
    """Return the kind of Go type of a list's elements, such as "struct" or "string"."""
    if node is None or node.type == "object":
        return "struct"
    return (node.format or "int") if node.type == "integer" else node.type


def _list_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Apply the elements `$patch: delete` and `$patch: replace` of a patch's list.

    Args:
        original: the existing list of objects, which is not modified.
        patch: the list of the patch.
        merge_key: the field that identifies elements.

    Returns:
        The list without the deleted elements and the patch without directives, which remain to be merged. With
        `$patch: replace` these are the new elements and [].

    Raises:
        StatusError: 400 for `$patch: merge`, an unknown directive, or a deleted element without the merge key.
    """
    kept: list[Any] = []
    deleted: set[Hashable] = set()
    replace = False
    for element in patch:
        if DIRECTIVE not in element:
            kept.append(element)
            continue
        match element[DIRECTIVE]:
            case "delete":
                if merge_key not in element:
                    raise no_merge_key(element, merge_key)
                deleted.add(ordered_lists.identity(element[merge_key]))
            case "replace":
                replace = True
            case "merge":
                raise bad_patch("merging lists cannot yet be specified in the patch")
            case other:
                raise bad_patch_type(other, element)
    if replace:
        return kept, []
    if deleted:
        original = [v for v in original if merge_key not in v or ordered_lists.identity(v[merge_key]) not in deleted]
    return original, kept


def _merge_elements(
    original: list[Any], patch: list[Any], merge_key: str, node: SchemaNode | None, steps: _Steps
) -> list[Any]:
    merged = list(original)
    places: dict[Hashable, int] = {}
    changed: set[int] = set()
    for i, element in enumerate(merged):
        if merge_key in element:
            places.setdefault(ordered_lists.identity(element[merge_key]), i)
    for element in patch:
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        place = places.setdefault(ordered_lists.identity(element[merge_key]), len(merged))
        if place < len(merged):
            merged[place] = _merge_maps(merged[place], element, node, steps.repeated() if place in changed else steps)
            changed.add(place)
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


def _set_element_order(merged: Object, patch: Object, key: str, node: SchemaNode | None, steps: _Steps) -> None:
    """Apply the directive `key` (`$setElementOrder/F`): merge field F in the order of its list.

    Args:
        merged: the object that is being merged, whose field is replaced.
        patch: the patch of this object, from which the field and the directive are removed.
        key: the name of the directive with its field.
        node: the schema of the object; None if it is unknown.
        steps: the budget of merge steps.

    Raises:
        StatusError: the directive or the field is not a list, or the elements do not fit the order.
    """
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
        result = (
            _merge_lists(merged[name], patch[name], child, merge_key, steps) if strategy == "merge" else patch[name]
        )
    elif name in patch:
        result = _without_directives(patch[name])
    elif name in merged:
        result = merged[name]
    else:
        return
    if not original and not changes:
        raise bad_patch("no elements in any of the given slices")
    of_maps = _element_is_map(original or [], changes or [])
    live = original or []
    if changes and of_maps and merge_key and strategy == "merge":
        live = _overwritten(live, changes, merge_key)
    merged[name] = ordered_lists.in_order(result, wanted=order, live=live, merge_key=merge_key, of_maps=of_maps)
    patch.pop(name, None)


def _overwritten(live: list[Any], changes: list[Any], merge_key: str) -> list[Any]:
    """Return the existing list as upstream leaves it after merging.

    Upstream deletes elements in place and appends new ones to the same memory, so that these take the places of the
    deleted ones. It then orders the result by this list.
    """
    deleted = {ordered_lists.identity(v[merge_key]) for v in changes if _is_directive(v) and merge_key in v}
    kept = [v for v in live if merge_key not in v or ordered_lists.identity(v[merge_key]) not in deleted]
    known = {ordered_lists.identity(v[merge_key]) for v in kept if merge_key in v}
    added = [v for v in changes if not _is_directive(v) and ordered_lists.identity(v[merge_key]) not in known]
    return [*kept, *added[: len(live) - len(kept)]]


def _check_order(changes: list[Any], order: list[Any], merge_key: str) -> None:
    """Check that the elements of the patch's list are in the order list, in the same order.

    Args:
        changes: the list of the patch; its elements with a `$patch` directive are skipped.
        order: the list of the `$setElementOrder` directive, which may have further elements. If either list is empty,
            nothing is checked.
        merge_key: the field that identifies elements; "" for lists of scalars.

    Raises:
        StatusError: 400 if they are not.
    """
    if not order or not changes:
        return
    if merge_key and (scalars := [change for change in changes if not isinstance(change, dict)]):
        raise bad_argument_type("map[string]interface {}", type_name(scalars[0]))
    remaining = [c for c in changes if not (_is_directive(c) and c[DIRECTIVE] == "delete")] if merge_key else changes
    i = j = 0
    wanted: Hashable = None  # the merge value of remaining[i], cached because it can be long and is compared with many
    while i < len(remaining) and j < len(order):
        if _is_directive(remaining[i]):
            i += 1
            continue
        if merge_key and not isinstance(order[j], dict):
            raise bad_argument_type("map[string]interface {}", type_name(order[j]))
        if wanted is None:
            wanted = _merge_value(remaining[i], merge_key)
        if wanted == _merge_value(order[j], merge_key):
            i += 1
            wanted = None
        j += 1
    if i < len(remaining):
        raise bad_patch(
            f"The order in patch list:\n{plain(changes)}\n doesn't match {ORDER_PREFIX} list:\n{plain(order)}\n"
        )


def _merge_value(element: Any, merge_key: str) -> Hashable:
    if not merge_key:
        return ordered_lists.identity(element)
    if not isinstance(element, dict):
        raise bad_argument_type("map[string]interface {}", type_name(element))
    if merge_key not in element:
        raise no_merge_key(element, merge_key)
    return ordered_lists.identity(element[merge_key])


def _child(node: SchemaNode | None, name: str) -> tuple[SchemaNode | None, str, str]:
    """Return the schema of a field, its merge strategy and its merge key.

    For a list, the schema is that of its items. The strategy `retainKeys` is left out. Strategy and key are "" if the
    field does not declare them. If `node` is None, the result is (None, "", "").

    Raises:
        StatusError: 400 if the type has no such field.
    """
    if node is None:
        return None, "", ""
    field_node = node.properties.get(name)
    if field_node is None:
        if node.properties or node.additional_properties is None:
            owner = node.definition.rpartition(".")[2]
            raise bad_patch(f'unable to find api field in struct {owner} for the json field "{name}"')
        raise bad_patch("merging an object in json but data type is not struct, instead is: map")
    strategy = next((s for s in field_node.patch_strategy if s != "retainKeys"), "")
    return (field_node.items if field_node.items is not None else field_node), strategy, field_node.patch_merge_key


def _field_of(key: str, prefix: str) -> str:
    directive, slash, name = key.partition("/")
    if not slash or directive != prefix:
        raise BAD_PRIMITIVE_LIST() if prefix == DELETE_PREFIX else BAD_SET_ELEMENT_ORDER()
    return name


def _element_is_map(*lists: list[Any]) -> bool:
    """Return whether the elements of the lists are maps.

    Raises:
        StatusError: 400 if the elements are not all of one type, 422 if they are lists.
    """
    names = {type_name(v): None for elements in lists for v in elements}
    if next(iter(names), "") == "[]interface {}":
        raise no_lists_of_lists()
    if len(names) > 1 or "<nil>" in names:
        raise bad_patch(f"list element types are not identical: {plain(list(lists))}")
    return "map[string]interface {}" in names


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _clean(value: Any) -> Any:
    """Return the value of a new field without null members and without `$patch` directives.

    Elements and members that are objects with such a directive are removed. The value is modified.
    """
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
