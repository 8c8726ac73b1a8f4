"""Merging an applied configuration into the live object: what it says wins, what it leaves out stays.

Lists known by keys take the configuration's order, with the live list's other elements worked in.
Follows sigs.k8s.io/structured-merge-diff/typed/merge.go.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from tetrapod.machinery.fieldmanager.typed import MAP, SCALAR, Type

_ABSENT: Final = object()


def merge(live: Any, config: Any, of: Type) -> Any:
    """The merged object; parts of both are shared, neither is changed. The configuration was validated.

    Raises:
        SchemaError: the live object has a list element without a key.
    """
    merged = _merge(live, config, of)
    return {} if merged is _ABSENT else merged


def _merge(live: Any, config: Any, of: Type) -> Any:
    if config is _ABSENT:
        return live
    if live is _ABSENT:
        return config
    kind = of.kind_of(config)
    if kind == SCALAR:
        return config
    if kind == MAP:
        live_map, config_map = live if isinstance(live, dict) else {}, config if isinstance(config, dict) else {}
        if of.map_atomic or not (live_map or config_map):
            return config
        return _merge_maps(live_map, config_map, of)
    live_list, config_list = live if isinstance(live, list) else [], config if isinstance(config, list) else []
    if of.list_atomic or not (live_list or config_list):
        return config
    return _merge_lists(live_list, config_list, of) or _ABSENT


def _merge_maps(live: dict[str, Any], config: dict[str, Any], of: Type) -> dict[str, Any]:
    out = dict(live)
    for name, value in config.items():
        merged = _merge(live.get(name, _ABSENT), value, of.member(name))
        if merged is not _ABSENT:
            out[name] = merged
    return out


def _merge_lists(live: list[Any], config: list[Any], of: Type) -> list[Any]:
    """Interleave: shared elements in the configuration's order, those of one side only near their neighbours."""
    items = of.items
    assert items is not None
    live_elements, config_elements = [of.element_of(v) for v in live], [of.element_of(v) for v in config]
    of_live: dict[str, Any] = {}
    for element, value in zip(live_elements, live, strict=True):
        # Elements that are there twice are not merged with the configuration's: it replaces them.
        of_live[element] = None if element in of_live else value
    of_config = dict(zip(config_elements, config, strict=True))
    shared = deque(e for e in config_elements if e in of_live)
    next_shared = shared.popleft() if shared else None
    taken: set[str] = set()
    out: list[Any] = []

    def take(element: str) -> None:
        taken.add(element)
        out.append(_merge(of_live.get(element, _ABSENT), of_config[element], items))

    left, right = 0, 0
    while left < len(live) or right < len(config):
        if left < len(live) and right < len(config):
            element = live_elements[left]
            if element == config_elements[right]:
                take(element)
                left, right = left + 1, right + 1
                next_shared = shared.popleft() if shared else None
                continue
            if element in of_config and next_shared is not None and next_shared != element:
                left += 1
                continue
        if left < len(live):
            element = live_elements[left]
            if element not in of_config:
                out.append(live[left])
                left += 1
                continue
            if element in taken:
                left += 1
        if right < len(config):
            element = config_elements[right]
            take(element)
            right += 1
            if next_shared == element:
                next_shared = shared.popleft() if shared else None
    return [value for value in out if value is not _ABSENT]
