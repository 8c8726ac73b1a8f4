"""Field selectors, such as `metadata.name=x,status.phase!=Running`.

Lists, watches and deletecollections parse their selectors here. The endpoint knows which fields a kind supports.

Upstream: k8s.io/apimachinery/pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from tetrapod.machinery.boundedcache import bounded

Operator: TypeAlias = Literal["=", "!="]


class FieldRequirement(NamedTuple):
    """One term of a field selector: the field must equal the value (`=`) or differ from it (`!=`).

    Attributes:
        field: the name of the field, such as "metadata.name".
        op: the operator.
        value: the value without escapes.
    """

    field: str
    op: Operator
    value: str


class FieldSelector:
    """A field selector: a conjunction of equalities and inequalities; immutable.

    Without terms it selects every object.
    """

    __slots__ = ("requirements",)

    def __init__(self, requirements: list[FieldRequirement]) -> None:
        self.requirements = requirements

    @property
    def empty(self) -> bool:
        """Return whether the selector has no terms, so that it selects every object."""
        return not self.requirements

    def matches(self, values: Mapping[str, str]) -> bool:
        """Return whether an object's fields satisfy all terms.

        Args:
            values: the values by field name. A missing field is treated as an empty string.
        """
        return all((values.get(field, "") == value) is (op == "=") for field, op, value in self.requirements)

    def requires_exact_match(self, field: str) -> str | None:
        """Return the value of the first term `field=value` for a field, or None if the selector has no such term."""
        for name, op, value in self.requirements:
            if name == field and op == "=":
                return value
        return None

    def transform(self, change: Callable[[str, str], tuple[str, str]]) -> FieldSelector:
        """Return a selector with the field and the value of each term replaced.

        Args:
            change: returns the new field and value, called with the present ones. Its exceptions reach the caller.
        """
        return FieldSelector([FieldRequirement(*_renamed(change(r.field, r.value), r.op)) for r in self.requirements])

    def __str__(self) -> str:
        return ",".join(f"{field}{op}{escape(value)}" for field, op, value in self.requirements)


def _renamed(pair: tuple[str, str], op: Operator) -> tuple[str, Operator, str]:
    return pair[0], op, pair[1]


EVERYTHING: Final = FieldSelector([])
MOST_TERMS: Final = 4096
"""The most terms of a selector. Upstream has no limit except the size of a request's head."""


@bounded(count=256, size=1 << 20, largest=64 << 10, weigh_entry=lambda text, _: 8 * len(text) + 500)
def parse(text: str) -> FieldSelector:
    """Parse a field selector; an empty text selects every object.

    Results are cached, because several steps of a request parse the same selector.

    Raises:
        ValueError: the selector is invalid (with upstream's text) or has too many terms.
    """
    if not text:
        return EVERYTHING
    terms = _split(text)
    if len(terms) > MOST_TERMS:
        raise ValueError(f"invalid selector: the selector has more than {MOST_TERMS} terms")
    requirements = []
    for part in sorted(terms):
        if not part:
            continue
        field, op, raw = _split_term(part)
        if not op:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        if field or raw:  # a term without field and value has no effect
            requirements.append(FieldRequirement(field, "!=" if op == "!=" else "=", unescape(raw)))
    return FieldSelector(requirements)


def exactly(field: str, value: str) -> FieldSelector:
    """Return the selector `field=value`."""
    return FieldSelector([FieldRequirement(field, "=", value)])


def _split(text: str) -> list[str]:
    """Split a selector into terms, at each comma that is not escaped by a backslash. Escapes are kept."""
    if "\\" not in text:
        return text.split(",")
    terms, start = [], 0
    for match in _escape_or_comma(text):
        if match[0] == ",":
            terms.append(text[start : match.start()])
            start = match.end()
    terms.append(text[start:])
    return terms


_escape_or_comma = re.compile(r"\\.|,", re.DOTALL).finditer


def _split_term(term: str) -> tuple[str, str, str]:
    match = _operator(term)
    return (term[: match.start()], match[0], term[match.end() :]) if match is not None else ("", "", "")


_operator = re.compile("!=|==?").search


def escape(value: str) -> str:
    """Return a value as a selector contains it, with a backslash before each backslash, comma and equals sign."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def unescape(value: str) -> str:
    """Return a value of a selector without its escaping backslashes; the inverse of `escape`.

    Raises:
        ValueError: an invalid escape sequence, or an unescaped comma or equals sign.
    """
    if not _special(value):
        return value
    pieces: list[str] = []
    start = 0
    for match in _escapes(value):
        if match[0] in ",=":
            # upstream prints the rune's number
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(match[0])}")
        if match[0] == "\\" or match[0][1] not in "\\,=":
            raise ValueError(f"invalid field selector: invalid escape sequence: {match[0]}")
        pieces += (value[start : match.start()], match[0][1])
        start = match.end()
    return "".join((*pieces, value[start:]))


_special = re.compile(r"[\\,=]").search
_escapes = re.compile(r"\\.?|[,=]", re.DOTALL).finditer
