"""Merging of an applied configuration into the existing object: values in the configuration win, all others are kept.

Lists with `x-kubernetes-list-type: map` or `set` get the order of the configuration, with the other elements of the
existing list interleaved.

Upstream: sigs.k8s.io/structured-merge-diff/typed/merge.go.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from tetrapod.machinery.fieldmanager.typed import MAP, SCALAR, Type
from tetrapod.machinery.freeing import free_members

_ABSENT: Final = object()


def merge(live: Any, config: Any, value_type: Type) -> Any:
    """Return an object with the values of `config` in place of those of `live`.

    It shares parts of both arguments, which are not modified. The configuration must be valid.

    Args:
        live: the existing object.
        config: the applied configuration.
        value_type: the type of both.

    Raises:
        SchemaError: the existing object has a list element without a key.
    """
    merged = _merge(live, config, value_type)
    return {} if merged is _ABSENT else merged


def _merge(live: Any, config: Any, value_type: Type) -> Any:
    if config is _ABSENT:
        return live
    if live is _ABSENT:
        return config
    kind = value_type.kind_of(config)
    if kind == SCALAR:
        return config
    if kind == MAP:
        live_map, config_map = live if isinstance(live, dict) else {}, config if isinstance(config, dict) else {}
        if value_type.map_atomic or not (live_map or config_map):
            return config
        return _merge_maps(live_map, config_map, value_type)
    live_list, config_list = live if isinstance(live, list) else [], config if isinstance(config, list) else []
    if value_type.list_atomic or not (live_list or config_list):
        return config
    return _merge_lists(live_list, config_list, value_type) or _ABSENT


def _merge_maps(live: dict[str, Any], config: dict[str, Any], value_type: Type) -> dict[str, Any]:
    out = dict(live)
    for name, value in config.items():
        merged = _merge(live.get(name, _ABSENT), value, value_type.member(name))
        if merged is not _ABSENT:
            out[name] = merged
    return out


def _merge_lists(live: list[Any], config: list[Any], value_type: Type) -> list[Any]:
    """Merge two lists whose elements have keys or are a set.

    Elements that both lists have come in the order of the configuration. The other elements of each list stay between
    the elements that they were next to.

    Args:
        live: the list of the existing object.
        config: the list of the applied configuration.
        value_type: the type of both.

    Raises:
        SchemaError: an element of the existing list has no key.
    """
    items = value_type.items
    assert items is not None
    live_elements, config_elements = (
        [value_type.element_of(v) for v in live],
        [value_type.element_of(v) for v in config],
    )
    live_values: dict[str, Any] = {}
    for element, value in zip(live_elements, live, strict=True):
        # Elements that occur twice in the existing list are not merged: the one of the configuration replaces them.
        live_values[element] = None if element in live_values else value
    config_values = {element: config[i] for i, element in enumerate(config_elements)}  # dict(…) is one long step
    shared = deque(e for e in config_elements if e in live_values)
    next_shared = shared.popleft() if shared else None
    taken: set[str] = set()
    out: list[Any] = []

    def take(element: str) -> None:
        taken.add(element)
        out.append(_merge(live_values.get(element, _ABSENT), config_values[element], items))

    live_index, config_index = 0, 0
    while live_index < len(live) or config_index < len(config):
        if live_index < len(live) and config_index < len(config):
            element = live_elements[live_index]
            if element == config_elements[config_index]:
                take(element)
                live_index, config_index = live_index + 1, config_index + 1
                next_shared = shared.popleft() if shared else None
                continue
            if element in config_values and next_shared is not None and next_shared != element:
                live_index += 1
                continue
        if live_index < len(live):
            element = live_elements[live_index]
            if element not in config_values:
                out.append(live[live_index])
                live_index += 1
                continue
            if element in taken:
                live_index += 1
        if config_index < len(config):
            element = config_elements[config_index]
            take(element)
            config_index += 1
            if next_shared == element:
                next_shared = shared.popleft() if shared else None
    merged = [value for value in out if value is not _ABSENT]
    for container in (taken, live_values, config_values, live_elements, config_elements):
        free_members(container)
    return merged
