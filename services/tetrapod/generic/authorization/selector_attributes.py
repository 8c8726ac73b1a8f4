"""The selectors of a list, watch or deletecollection as authorization attributes (AuthorizeWithSelectors).

A selector that cannot be parsed has no requirements: as upstream, the request is authorized as if it had no selector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, overload

from tetrapod.machinery import field_selectors, labels
from tetrapod.machinery.requestinfo import RequestInfo

Requirements = tuple[dict[str, Any], ...]
_VERBS: Final = frozenset({"list", "watch", "deletecollection"})
_OPERATORS: Final = {
    "in": "In",
    "notin": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
    "=": "In",
    "==": "In",
    "!=": "NotIn",
}


_LARGE: Final = 4096
"""Characters from which on a selector is parsed in a thread. Parsing takes a millisecond or two then; usual selectors
are shorter.
"""


class _Unparsed(Sequence[dict[str, Any]]):
    """The sequence of a selector's requirements. The selector is parsed at the first access, which RBAC never makes.

    Args:
        text: the selector.
        parse: the function that parses it.
    """

    __slots__ = ("_parse", "_parsed", "_text")

    def __init__(self, text: str, parse: Callable[[str], Requirements]) -> None:
        self._text, self._parse = text, parse
        self._parsed: Requirements | None = None

    @property
    def large(self) -> bool:
        """Whether the selector is not parsed yet and has more than 4,096 characters.

        Parsing it would then block the event loop.
        """
        return self._parsed is None and len(self._text) > _LARGE

    def _requirements(self) -> Requirements:
        if self._parsed is None:
            self._parsed = self._parse(self._text)
        return self._parsed

    def __len__(self) -> int:
        return len(self._requirements())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._requirements())

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Requirements: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Requirements:
        return self._requirements()[index]


def requirements_of(info: RequestInfo) -> tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]:
    """Return the requirements of a request's field selector and of its label selector, as `Attributes` contains them.

    Both are empty for verbs other than list, watch and deletecollection. A selector is parsed when its requirements are
    first accessed, so await `parse_large` before.
    """
    if info.verb not in _VERBS:
        return (), ()
    return (
        _Unparsed(info.field_selector, field_requirements) if info.field_selector else (),
        _Unparsed(info.label_selector, label_requirements) if info.label_selector else (),
    )


async def parse_large(*selectors: Sequence[dict[str, Any]]) -> None:
    """Parse long selectors in a thread, so that accessing their requirements does not block the event loop.

    An authorizer that accesses requirements must await this first.

    Args:
        selectors: results of `requirements_of`; short or parsed ones are left alone.
    """
    for requirements in selectors:
        if isinstance(requirements, _Unparsed) and requirements.large:
            await asyncio.to_thread(len, requirements)


def field_requirements(text: str) -> Requirements:
    """Convert a field selector to FieldSelectorRequirement dicts; empty if it cannot be parsed."""
    if not text:
        return ()
    try:
        selector = field_selectors.parse(text)
    except ValueError:
        return ()
    return tuple(
        {"key": field, "operator": "NotIn" if op == "!=" else "In", "values": [value]}
        for field, op, value in selector.requirements
    )


def label_requirements(text: str) -> Requirements:
    """Convert a label selector to LabelSelectorRequirement dicts; empty if it cannot be parsed.

    Requirements with operators that have no equivalent (`>`, `<`) are left out.
    """
    if not text:
        return ()
    try:
        selector = labels.parse(text)
    except ValueError:
        return ()
    return tuple(
        {"key": r.key, "operator": _OPERATORS[r.op], **({"values": sorted(r.values)} if r.values else {})}
        for r in selector.requirements
        if r.op in _OPERATORS
    )
