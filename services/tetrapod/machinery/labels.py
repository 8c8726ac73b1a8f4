"""Label selectors: the text form (`a=b,c in (d,e),!f`), the object form (`matchLabels`, `matchExpressions`), and matching.

Lists and watches parse the text form once and match every object; controllers and admission use the object form.
Follows k8s.io/apimachinery/pkg/labels/selector.go and apis/meta/v1/helpers.go, error texts included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from tetrapod.machinery import field, names
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.labels_lexer import COMMA, END, IDENTIFIER, IN, NOT, NOT_IN, OPERATORS, Token, scan

Operator: TypeAlias = Literal["=", "==", "in", "!=", "notin", "exists", "!", "gt", "lt"]
Labels: TypeAlias = Mapping[str, str]

_BINARY: Final = "in, notin, =, ==, !=, gt, lt"
_is_integer = re.compile("[-+]?[0-9]+", re.ASCII).fullmatch


def _int64(text: str) -> int | None:
    if not _is_integer(text) or len(text) > 40:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


class Requirement:
    """One condition on one label. Make them with `requirement`, which validates, or trust your input."""

    __slots__ = ("key", "matches", "op", "values")

    def __init__(self, key: str, op: Operator, values: Iterable[str] = ()) -> None:
        self.key = key
        self.op: Operator = op
        self.values = tuple(values)
        self.matches: Callable[[Labels], bool] = _matcher(key, op, self.values)

    def __str__(self) -> str:
        joined = ",".join(sorted(self.values))
        match self.op:
            case "!":
                return f"!{self.key}"
            case "exists":
                return self.key
            case "in" | "notin":
                return f"{self.key} {self.op} ({joined})"
            case "gt":
                return f"{self.key}>{joined}"
            case "lt":
                return f"{self.key}<{joined}"
        return f"{self.key}{self.op}{joined}"

    def __repr__(self) -> str:
        return f"Requirement({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirement) and (self.key, self.op, self.values) == (other.key, other.op, other.values)

    def __hash__(self) -> int:
        return hash((self.key, self.op, self.values))


def _matcher(key: str, op: Operator, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    """A closure per operator: matching is the hot path of every selective list and watch."""
    if op in ("in", "=", "==", "notin", "!="):
        wanted = op in ("in", "=", "==")
        if len(values) == 1:
            only = values[0]
            return (lambda labels: labels.get(key) == only) if wanted else (lambda labels: labels.get(key) != only)
        listed = frozenset(values)
        return (lambda labels: labels.get(key) in listed) if wanted else (lambda labels: labels.get(key) not in listed)
    if op == "exists":
        return lambda labels: key in labels
    if op == "!":
        return lambda labels: key not in labels
    bound = _int64(values[0]) if len(values) == 1 else None

    def compare(labels: Labels) -> bool:
        value = labels.get(key)
        number = _int64(value) if value is not None else None
        if number is None or bound is None:
            return False
        return number > bound if op == "gt" else number < bound

    return compare


class Selector:
    """A conjunction of requirements, sorted by key; immutable. `Selector([])` selects everything."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self.requirements = sorted(requirements, key=lambda r: r.key)

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements

    def matches(self, labels: Labels | None) -> bool:
        if labels is None:
            labels = _NONE
        for requirement in self.requirements:  # noqa: SIM110 - a generator in all() costs twice as much here
            if not requirement.matches(labels):
                return False
        return True

    def requires_exact_match(self, key: str) -> str | None:
        for requirement in self.requirements:
            if requirement.key == key:
                return requirement.values[0] if requirement.op in ("=", "==", "in") and len(requirement.values) == 1 else None
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Selector) and other.requirements == self.requirements

    def __hash__(self) -> int:
        return hash(tuple(self.requirements))


class _Nothing(Selector):
    """What a missing LabelSelector object selects."""

    __slots__ = ()

    @property
    def empty(self) -> bool:
        return False

    def matches(self, labels: Labels | None) -> bool:
        return False


_NONE: Final[Labels] = {}
EVERYTHING: Final = Selector([])
NOTHING: Final[Selector] = _Nothing([])


def requirement(key: str, op: str, values: list[str], path: str = "") -> Requirement:
    """A validated requirement.

    Raises:
        ValueError: all complaints, aggregated as upstream does.
    """
    errors: list[FieldError] = []
    key_path, values_path = (field.child(path, "key"), field.child(path, "values")) if path else ("<nil>", "values")
    if texts := names.is_qualified_name(key):
        errors.append(field.invalid(key_path, key, "; ".join(texts)))
    errors += _value_count_errors(op, values, values_path, path)
    for i, value in enumerate(values):
        if texts := names.is_valid_label_value(value):
            errors.append(field.invalid(field.key(field.index(values_path, i), key), value, "; ".join(texts)))
    if errors:
        listed = list(dict.fromkeys(map(str, errors)))
        raise ValueError(listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]")
    return Requirement(key, op, values)  # type: ignore[arg-type]


def _value_count_errors(op: str, values: list[str], path: str, parent: str) -> list[FieldError]:
    match op:
        case "in" | "notin":
            return [] if values else [field.invalid(path, values, "for 'in', 'notin' operators, values set can't be empty")]
        case "=" | "==" | "!=":
            return [] if len(values) == 1 else [field.invalid(path, values, "exact-match compatibility requires one single value")]
        case "exists" | "!":
            return [field.invalid(path, values, "values set must be empty for exists and does not exist")] if values else []
        case "gt" | "lt":
            errors = []
            if len(values) != 1:
                errors.append(field.invalid(path, values, "for 'Gt', 'Lt' operators, exactly one value is required"))
            text = "for 'Gt', 'Lt' operators, the value must be an integer"
            return errors + [field.invalid(field.index(path, i), v, text) for i, v in enumerate(values) if _int64(v) is None]
    known = ["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]
    return [field.not_supported(field.child(parent, "operator"), op, known)]


def parse(text: str) -> Selector:
    """Parse the text form of a selector.

    Raises:
        ValueError: with upstream's text.
    """
    if not text:
        return EVERYTHING
    return Selector(_Parser(scan(text)).parse())


class _Parser:
    """Recursive descent over the tokens. `in` and `notin` are words like others except as operators."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> Token:
        kind, text = self._tokens[self._at]
        return (IDENTIFIER, text) if kind in (IN, NOT_IN) else (kind, text)

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == END:
                return found
            if kind not in (IDENTIFIER, NOT):
                raise ValueError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            kind, text = self._next()
            if kind == END:
                return found
            if kind != COMMA:
                raise ValueError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in (IDENTIFIER, NOT):
                raise ValueError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, key = self._next()
        negated = kind == NOT
        if negated:
            kind, key = self._next()
        if kind != IDENTIFIER:
            raise ValueError(f"found '{key}', expected: identifier")
        if texts := names.is_qualified_name(key):
            raise ValueError(str(field.invalid("<nil>", key, "; ".join(texts))))
        if negated:
            return requirement(key, "!", [])
        if self._peek()[0] in (END, COMMA):
            return requirement(key, "exists", [])
        kind, text = self._tokens[self._at]
        self._at += 1
        op = OPERATORS.get(kind)
        if op is None:
            raise ValueError(f"found '{text}', expected: {_BINARY}")
        values = self._values() if op in ("in", "notin") else {self._exact_value()}
        return requirement(key, op, sorted(values))

    def _values(self) -> set[str]:
        kind, text = self._next()
        if kind != "(":
            raise ValueError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind == ")":
            self._at += 1
            return {""}
        if kind not in (IDENTIFIER, COMMA):
            raise ValueError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._identifiers()
        self._at += 1  # the closing parenthesis at which _identifiers stopped
        return values

    def _identifiers(self) -> set[str]:
        values: set[str] = set()
        while True:
            kind, text = self._next()
            if kind == IDENTIFIER:
                values.add(text)
                kind, text = self._peek()
                if kind == ")":
                    return values
                if kind != COMMA:
                    raise ValueError(f"found '{text}', expected: ',' or ')'")
            elif kind == COMMA:
                if not values:
                    values.add("")
                following = self._peek()[0]
                if following == ")":
                    values.add("")
                    return values
                if following == COMMA:
                    values.add("")
            else:
                raise ValueError(f"found '{text}', expected: ',', or identifier")

    def _exact_value(self) -> str:
        if self._peek()[0] in (END, COMMA):
            return ""
        kind, text = self._next()
        if kind != IDENTIFIER:
            raise ValueError(f"found '{text}', expected: identifier")
        return text


def from_set(labels: Labels | None) -> Selector:
    """A selector of exactly these labels, trusted to be valid."""
    return Selector(Requirement(key, "=", (value,)) for key, value in labels.items()) if labels else EVERYTHING


_OBJECT_OPERATORS: Final[dict[str, str]] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """The selector of a LabelSelector object: none selects nothing, an empty one everything.

    Raises:
        ValueError: an unknown operator or invalid keys or values.
    """
    if selector is None:
        return NOTHING
    match_labels: Labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    if not match_labels and not expressions:
        return EVERYTHING
    found = [requirement(key, "=", [value]) for key, value in match_labels.items()]
    for expression in expressions:
        op = _OBJECT_OPERATORS.get(expression.get("operator", ""))
        if op is None:
            raise ValueError(f"{field.go_quote(expression.get('operator', ''))} is not a valid label selector operator")
        found.append(requirement(expression.get("key", ""), op, list(expression.get("values") or ())))
    return Selector(found)


def format_label_selector(selector: Mapping[str, Any] | None) -> str:
    """As tables show it: `<none>` where nothing is restricted, `<error>` where it does not parse."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except ValueError:
        return "<error>"


def validate_label_name(name: str, path: str) -> list[FieldError]:
    return [field.invalid(path, name, text) for text in names.is_qualified_name(name)]


def validate_labels(labels: Labels | None, path: str) -> list[FieldError]:
    """Keys and values; upstream goes through its map at random, we in order."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors += validate_label_name(key, path)
        errors += [field.invalid(path, value, text) for text in names.is_valid_label_value(value)]
    return errors


def validate_label_selector(selector: Mapping[str, Any] | None, path: str, *, allow_invalid_values: bool = False) -> list[FieldError]:
    """A LabelSelector object in a field; `allow_invalid_values` is for updates of objects that already have bad ones."""
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels"), field.child(path, "matchLabels"))
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        at = field.index(field.child(path, "matchExpressions"), i)
        errors += validate_label_selector_requirement(expression, at, allow_invalid_values=allow_invalid_values)
    return errors


def validate_label_selector_requirement(
    expression: Mapping[str, Any], path: str, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    errors: list[FieldError] = []
    op, values = expression.get("operator", ""), expression.get("values") or []
    if op in ("In", "NotIn"):
        if not values:
            errors.append(field.required(field.child(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif op in ("Exists", "DoesNotExist"):
        if values:
            errors.append(
                field.forbidden(field.child(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            )
    else:
        errors.append(field.invalid(field.child(path, "operator"), op, "not a valid selector operator"))
    errors += validate_label_name(expression.get("key", ""), field.child(path, "key"))
    if not allow_invalid_values:
        for i, value in enumerate(values):
            at = field.index(field.child(path, "values"), i)
            errors += [field.invalid(at, value, text) for text in names.is_valid_label_value(value)]
    return errors
