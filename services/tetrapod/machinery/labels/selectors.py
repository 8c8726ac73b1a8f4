"""Conditions on labels (`Requirement`) and their conjunctions (`Selector`), compiled to functions that match labels.

Upstream: k8s.io/apimachinery/pkg/labels/selector.go, including its error texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

from tetrapod.machinery import field, names
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.field import FieldError

Operator: TypeAlias = Literal["=", "==", "in", "!=", "notin", "exists", "!", "gt", "lt"]
Labels: TypeAlias = Mapping[str, str]

_is_integer = re.compile("[-+]?[0-9]+", re.ASCII).fullmatch


def _int64(text: str) -> int | None:
    if not _is_integer(text) or len(text) > 40:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


class Requirement:
    """A condition on one label, such as `app=web`. `matches(labels)` returns whether labels satisfy it.

    The constructor does not validate its arguments; the function `requirement` does.

    Attributes:
        key: the label's name.
        op: the operator.
        values: the values that the operator compares with.
    """

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
        return isinstance(other, Requirement) and (self.key, self.op, self.values) == (
            other.key,
            other.op,
            other.values,
        )

    def __hash__(self) -> int:
        return hash((self.key, self.op, self.values))


def _matcher(key: str, op: Operator, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    """Return a function that returns whether labels satisfy the requirement `key op values`.

    Each operator has its own function, because matching is the hot path of lists and watches with a selector.
    """
    if op in ("in", "=", "==", "notin", "!="):
        inclusive = op in ("in", "=", "==")
        if len(values) == 1:
            only = values[0]
            return (lambda labels: labels.get(key) == only) if inclusive else (lambda labels: labels.get(key) != only)
        listed = frozenset(values)
        return (
            (lambda labels: labels.get(key) in listed) if inclusive else (lambda labels: labels.get(key) not in listed)
        )
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


MANY: Final = 16
"""Requirements beyond which a selector is matched by `Conditions`."""


class Conditions:
    """Many requirements, indexed by label: the time to match an object depends only on the number of its labels.

    A selector may have thousands of requirements, and a list matches them with thousands of objects.
    """

    __slots__ = ("_by_key", "_needed")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._by_key: dict[str, _Condition] = {}
        for requirement in requirements:
            self._by_key.setdefault(requirement.key, _Condition()).add(requirement)
        self._needed = sum(condition.needed for condition in self._by_key.values())

    def match(self, labels: Labels) -> bool:
        """Return whether labels satisfy all requirements."""
        satisfied = 0
        for key, value in labels.items():
            condition = self._by_key.get(key)
            if condition is None:
                continue
            if not condition.allows(value):
                return False
            satisfied += condition.needed
        return satisfied == self._needed


class _Condition:
    """All requirements of a selector on one label, combined so that a value is checked against all of them at once.

    Attributes:
        needed: whether the label must be present.
    """

    __slots__ = ("_absent", "_allowed", "_excluded", "_lower", "_upper", "needed")

    def __init__(self) -> None:
        self.needed = False
        self._absent = False
        self._allowed: frozenset[str] | None = None
        self._excluded: set[str] = set()
        self._lower: int | None = None  # the largest bound of `gt`
        self._upper: int | None = None  # the smallest bound of `lt`

    def add(self, requirement: Requirement) -> None:
        """Add a requirement on the label."""
        match requirement.op:
            case "!=" | "notin":
                self._excluded.update(requirement.values)
                return
            case "!":
                self._absent = True
                return
            case "in" | "=" | "==":
                values = frozenset(requirement.values)
                self._allowed = values if self._allowed is None else self._allowed & values
            case "gt" | "lt":
                bound = _int64(requirement.values[0]) if len(requirement.values) == 1 else None
                if bound is None:
                    self._absent = True  # no value satisfies the requirement
                elif requirement.op == "gt":
                    self._lower = bound if self._lower is None else max(self._lower, bound)
                else:
                    self._upper = bound if self._upper is None else min(self._upper, bound)
        self.needed = True

    def allows(self, value: str) -> bool:
        """Return whether the label may be present with a value."""
        if self._absent or value in self._excluded or (self._allowed is not None and value not in self._allowed):
            return False
        if self._lower is None and self._upper is None:
            return True
        number = _int64(value)
        if number is None:
            return False
        return (self._lower is None or number > self._lower) and (self._upper is None or number < self._upper)


class Selector:
    """A conjunction of requirements, sorted by key; immutable. Without requirements it selects every object."""

    __slots__ = ("_conditions", "requirements")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self.requirements = sorted(requirements, key=lambda r: r.key)
        self._conditions = Conditions(self.requirements) if len(self.requirements) > MANY else None

    @property
    def empty(self) -> bool:
        """Return whether the selector selects every object."""
        return not self.requirements

    def matches(self, labels: Labels | None) -> bool:
        """Return whether labels satisfy all requirements. None is treated as an empty map."""
        if labels is None:
            labels = _NONE
        if self._conditions is not None:
            return self._conditions.match(labels)
        for requirement in self.requirements:  # noqa: SIM110 - a generator in all() costs twice as much here
            if not requirement.matches(labels):
                return False
        return True

    @property
    def matcher(self) -> Callable[[Labels], bool]:
        """`matches`, or a function that returns the same for a map of labels in less time. Use it for many objects."""
        return self.requirements[0].matches if len(self.requirements) == 1 else self.matches

    def requires_exact_match(self, key: str) -> str | None:
        """Return the only value that a label may have, or None if it may have several.

        Only the first requirement on the label counts: it must be an equality, or `in` with one value.

        Upstream: RequiresExactMatch.
        """
        for requirement in self.requirements:
            if requirement.key == key:
                return (
                    requirement.values[0]
                    if requirement.op in ("=", "==", "in") and len(requirement.values) == 1
                    else None
                )
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Selector) and other.requirements == self.requirements

    def __hash__(self) -> int:
        return hash(tuple(self.requirements))


class _Nothing(Selector):
    """The selector for a LabelSelector field that is unset (null), which matches no object."""

    __slots__ = ()

    @property
    def empty(self) -> bool:
        return False

    def matches(self, labels: Labels | None) -> bool:
        return False


_NONE: Final[Labels] = {}
EVERYTHING: Final = Selector([])
NOTHING: Final[Selector] = _Nothing([])


def requirement(key: str, op: str, values: list[str], path: str = "", *, key_is_valid: bool = False) -> Requirement:
    """Return a requirement, after validating its parts.

    Args:
        key: the label's name.
        op: the operator in lower case, as Go's package selection spells it: in, notin, =, ==, !=, gt, lt, exists or !.
        values: the values that the operator compares with.
        path: the field's path for errors; "" for a selector in text form.
        key_is_valid: whether the caller has validated the key.

    Raises:
        ValueError: the key, the operator or a value is invalid; the text has all errors, as upstream aggregates them.
    """
    errors: list[FieldError] = []
    key_path, values_path = (field.child(path, "key"), field.child(path, "values")) if path else ("<nil>", "values")
    if not key_is_valid and (texts := names.is_qualified_name(key)):
        errors.append(field.invalid(key_path, key, "; ".join(texts)))
    errors += _value_count_errors(op, values, values_path, path)
    for i, value in enumerate(values):
        if texts := names.is_valid_label_value(value):
            errors.append(field.invalid(field.key(field.index(values_path, i), key), value, "; ".join(texts)))
    if errors:
        raise ValueError(aggregate_errors(errors))
    return Requirement(key, op, values)  # type: ignore[arg-type]


def _value_count_errors(op: str, values: list[str], path: str, parent: str) -> list[FieldError]:
    match op:
        case "in" | "notin":
            return (
                []
                if values
                else [field.invalid(path, values, "for 'in', 'notin' operators, values set can't be empty")]
            )
        case "=" | "==" | "!=":
            return (
                []
                if len(values) == 1
                else [field.invalid(path, values, "exact-match compatibility requires one single value")]
            )
        case "exists" | "!":
            return (
                [field.invalid(path, values, "values set must be empty for exists and does not exist")]
                if values
                else []
            )
        case "gt" | "lt":
            errors = []
            if len(values) != 1:
                errors.append(field.invalid(path, values, "for 'Gt', 'Lt' operators, exactly one value is required"))
            text = "for 'Gt', 'Lt' operators, the value must be an integer"
            return errors + [
                field.invalid(field.index(path, i), v, text) for i, v in enumerate(values) if _int64(v) is None
            ]
    known = ["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]
    return [field.not_supported(field.child(parent, "operator"), op, known)]
