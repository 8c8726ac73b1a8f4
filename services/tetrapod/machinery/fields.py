"""Field selectors: `metadata.name=x,status.phase!=Running`.

Lists, watches and deletecollections parse theirs here; which fields a kind knows is the endpoint's business.
Follows k8s.io/apimachinery/pkg/fields/selector.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

Operator: TypeAlias = Literal["=", "!="]


class FieldRequirement(NamedTuple):
    field: str
    op: Operator
    value: str


class FieldSelector:
    """A conjunction of equalities and inequalities; immutable."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: list[FieldRequirement]) -> None:
        self.requirements = requirements

    @property
    def empty(self) -> bool:
        return not self.requirements

    def matches(self, values: Mapping[str, str]) -> bool:
        """Whether the fields satisfy all; a field that is not there counts as empty."""
        return all((values.get(field, "") == value) is (op == "=") for field, op, value in self.requirements)

    def requires_exact_match(self, field: str) -> str | None:
        """The value that the field must have, None where it is free."""
        for name, op, value in self.requirements:
            if name == field and op == "=":
                return value
        return None

    def transform(self, change: Callable[[str, str], tuple[str, str]]) -> FieldSelector:
        """Every (field, value) replaced by what `change` makes of it; it may raise for fields that are not known."""
        return FieldSelector([FieldRequirement(*_renamed(change(r.field, r.value), r.op)) for r in self.requirements])

    def __str__(self) -> str:
        return ",".join(f"{field}{op}{escape(value)}" for field, op, value in self.requirements)


def _renamed(pair: tuple[str, str], op: Operator) -> tuple[str, Operator, str]:
    return pair[0], op, pair[1]


EVERYTHING: Final = FieldSelector([])


@lru_cache(maxsize=2)
def parse(text: str) -> FieldSelector:
    """Parse a selector; the last ones are kept, for those on one request's way who ask again (a text may be a megabyte).

    Raises:
        ValueError: with upstream's text.
    """
    if not text:
        return EVERYTHING
    found = []
    for part in sorted(_split(text)):
        if not part:
            continue
        field, op, raw = _split_term(part)
        if not op:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        if field or raw:  # a comparison of nothing with nothing says nothing
            found.append(FieldRequirement(field, "!=" if op == "!=" else "=", unescape(raw)))
    return FieldSelector(found)


def exactly(field: str, value: str) -> FieldSelector:
    return FieldSelector([FieldRequirement(field, "=", value)])


def _split(text: str) -> list[str]:
    """The terms between commas; a backslash takes the next character along."""
    if "\\" not in text:
        return text.split(",")
    terms, start, escaped = [], 0, False
    for i, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            terms.append(text[start:i])
            start = i + 1
    terms.append(text[start:])
    return terms


def _split_term(term: str) -> tuple[str, str, str]:
    for i in range(len(term)):
        for op in ("!=", "==", "="):
            if term.startswith(op, i):
                return term[:i], op, term[i + len(op) :]
    return "", "", ""


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def unescape(value: str) -> str:
    """Take the backslashes from a value.

    Raises:
        ValueError: an escape of anything but a backslash, comma or equals sign, or a bare comma or equals sign.
    """
    if not any(char in value for char in "\\,="):
        return value
    out = []
    escaped = False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{char}")
            out.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(char)}")  # upstream prints the rune's number
        else:
            out.append(char)
    if escaped:
        raise ValueError("invalid field selector: invalid escape sequence: \\")
    return "".join(out)
