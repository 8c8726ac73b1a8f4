"""Validation of the CEL rules (`x-kubernetes-validations`) in the schema of a CustomResourceDefinition.

Errors are rules that do not compile, rules whose estimated cost exceeds a limit, and rules that use `oldSelf` where no
old value can be found. `crd_schema.validate` calls this module.

Upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation (validation.go, cel_validation.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tetrapod.machinery.field import FieldError, child, forbidden, index, invalid, key
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.cel_rules import CompiledRule, compile_rules
from tetrapod.machinery.schema.structural import build

if TYPE_CHECKING:
    from tetrapod.machinery.cel.declarations import DeclType
    from tetrapod.machinery.cel.environment import Program

EXPRESSION_LIMIT: Final = 10_000_000
TOTAL_LIMIT: Final = 100_000_000
_MAX: Final = (1 << 64) - 1
_RULES: Final = "x-kubernetes-validations"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a schema within the whole openAPIV3Schema, and facts that follow from the schemas above it.

    Attributes:
        path: the field path of the schema, for errors.
        cardinality: the maximum number of values of this schema in one object, or None if it is unbounded.
        uncorrelated: the path of the nearest list above whose elements cannot be matched with their old values on
            update, or "".
        decl: the CEL type of the schema, or None if no schema above it has needed one yet.
        root: whether this is the root schema.
        scoped: whether a schema above has rules.
        untyped: whether no CEL type could be built for a scoped schema above.
    """

    path: str
    cardinality: int | None = 1
    uncorrelated: str = ""
    decl: DeclType | None = None
    root: bool = False
    scoped: bool = False
    untyped: bool = False


class RuleErrors:
    """The checks of all CEL rules of one openAPIV3Schema. Call `check` first, then `total_errors`.

    Args:
        show: formats a rule as the value that an error quotes.
        faulty: the paths of schemas that have other errors. Rules of a schema with such an error at or below it are not
            checked.
        limited: whether the cost limit of a single rule applies.
    """

    def __init__(self, show: Callable[[Object], Any], faulty: list[str], *, limited: bool) -> None:
        self._show = show
        self._faulty = faulty
        self._limited = limited
        self._total = 0
        self._expensive: list[tuple[int, str]] = []
        self.errors: list[FieldError] = []

    def check(self, schema: Object, path: str) -> list[FieldError]:
        """Return the errors of every rule in a whole openAPIV3Schema at `path`, except those about the summed cost.

        Args:
            schema: the root schema.
            path: its field path.
        """
        self._schema(schema, _Place(path, root=True))
        return self.errors

    def total_errors(self, path: str) -> list[FieldError]:
        """Return the errors about the summed cost of all rules that `check` has seen; [] if it is within the limit.

        There is one error for each of the most expensive rules (at most four) and one for the schema at `path`.

        Args:
            path: the field path of the root schema.
        """
        if self._total <= TOTAL_LIMIT:
            return []
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        errors = [forbidden(place, text) for _, place in self._expensive]
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*errors, forbidden(path, _cost_text(name, self._total, TOTAL_LIMIT))]

    def _schema(self, schema: Any, place: _Place) -> None:
        if not isinstance(schema, dict) or not has_rules(schema):
            return
        decl = place.decl
        rules = schema.get(_RULES) or []
        scoped = place.scoped or bool(rules)
        if scoped and decl is None and not place.untyped:
            from tetrapod.machinery.cel.schema_types import declared

            decl = declared(build(schema), root=place.root or bool(schema.get(_EMBEDDED)))
        untyped = place.untyped or (scoped and decl is None)
        for below, name, at in _below(schema, replace(place, decl=decl, scoped=scoped, untyped=untyped)):
            self._schema(below, replace(at, decl=_below_decl(decl, name), root=False))
        if not rules or any(
            p == place.path or p.startswith((f"{place.path}.", f"{place.path}[")) for p in self._faulty
        ):
            return
        if decl is None:
            text = "unable to convert structural schema to CEL declarations"
            text = f"internal error: failed to construct type information for x-kubernetes-validations rules: {text}"
            self.errors.append(FieldError("InternalError", child(place.path, _RULES), text))
            return
        for i, compiled in enumerate(compile_rules(rules, decl, schema)):
            self._rule(compiled, index(child(place.path, _RULES), i), place, decl)

    def _rule(self, compiled: CompiledRule, at: str, place: _Place, decl: DeclType) -> None:
        rule = compiled.declared
        cost = self._cost(compiled.program, place, decl)
        self._observe(child(at, "rule"), "estimated rule cost", cost)
        if compiled.error:
            self.errors.append(invalid(child(at, "rule"), self._show(rule), compiled.error))
        if compiled.message_error:
            self.errors.append(invalid(child(at, "messageExpression"), self._show(rule), compiled.message_error))
        elif compiled.message is not None:
            cost = compiled.message.cost_estimate().max
            self._observe(child(at, "messageExpression"), "estimated messageExpression cost", cost)
        if compiled.uses_old:
            if place.uncorrelated:
                text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}"
                self.errors.append(invalid(child(at, "rule"), rule.get("rule") or "", text))
        elif rule.get("optionalOldSelf") is not None:
            text = "may not be set if oldSelf is not used in rule"
            self.errors.append(invalid(child(at, "optionalOldSelf"), rule["optionalOldSelf"], text))

    def _cost(self, program: Program | None, place: _Place, decl: DeclType) -> int:
        """Return the estimated cost of a rule for one object, or 0 if the rule did not compile.

        It is the cost of one evaluation, multiplied by the maximum number of values in an object that the rule applies
        to.

        Args:
            program: the program of the rule; None if it did not compile.
            place: the position of the rule's schema, which may know that number.
            decl: the CEL type of the values, from whose minimum size the number is derived otherwise.
        """
        from tetrapod.machinery.cel.limits import MAX_REQUEST_SIZE

        if program is None:
            return 0
        times = MAX_REQUEST_SIZE // (decl.min_size + 1) if place.cardinality is None else place.cardinality
        return min(program.cost_estimate().max * times, _MAX)

    def _observe(self, at: str, name: str, cost: int) -> None:
        """Add a cost to the total, and append an error to `errors` if it exceeds the limit of one expression.

        The four highest costs of at least 1% of the total limit are kept for `total_errors`.

        Args:
            at: the path of the expression.
            name: its name in the error.
            cost: its estimated cost.
        """
        if self._limited and cost > EXPRESSION_LIMIT:
            self.errors.append(forbidden(at, _cost_text(name, cost, EXPRESSION_LIMIT)))
        self._total = min(self._total + cost, _MAX)
        if cost >= TOTAL_LIMIT // 100:
            self._expensive = sorted([*self._expensive, (cost, at)], key=lambda entry: -entry[0])[:4]


def has_rules(schema: Object) -> bool:
    """Return whether a schema, or one below it in items, additionalProperties or properties, has CEL rules."""
    todo: list[Any] = [schema]
    while todo:
        current = todo.pop()
        if isinstance(current, dict):
            if current.get(_RULES):
                return True
            todo += [
                current.get("items"),
                current.get("additionalProperties"),
                *(current.get("properties") or {}).values(),
            ]
    return False


def _below(schema: Object, place: _Place) -> Iterator[tuple[Any, str, _Place]]:
    """Yield the schemas directly below a schema, in upstream's order.

    Each item is the schema, which may be None or a value of a wrong type; its name in the CEL type (`@elem` for items
    and additionalProperties); and its position.

    Args:
        schema: the schema.
        place: its position within the openAPIV3Schema.
    """
    max_elements = _most(schema)
    cardinality = (
        None if place.cardinality is None or max_elements is None else min(place.cardinality * max_elements, _MAX)
    )
    inner = replace(place, cardinality=cardinality)
    yield schema.get("additionalProperties"), "@elem", replace(inner, path=child(place.path, "additionalProperties"))
    for name, prop in (schema.get("properties") or {}).items():
        yield prop, name, replace(inner, path=key(child(place.path, "properties"), name))
    if schema.get("x-kubernetes-list-type") != "map":
        inner = replace(inner, uncorrelated=place.uncorrelated or place.path)
    yield schema.get("items"), "@elem", replace(inner, path=child(place.path, "items"))


def _most(schema: Object) -> int | None:
    """Return the maximum number of elements in one value of the schema, or None if it is unbounded.

    The number is 1 unless the value is a map or a list.
    """
    type_name = schema.get("type")
    if type_name == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    elif type_name == "array":
        limit = schema.get("maxItems")
    else:
        return 1
    return None if limit is None else max(limit, 0)


def _below_decl(decl: DeclType | None, name: str) -> DeclType | None:
    """Return the CEL type of a part of a value, or None if expressions cannot access it.

    Args:
        decl: the CEL type of the value, or None.
        name: the name of a field, or `@elem` for the elements of a list or map.
    """
    if decl is None:
        return None
    if name == "@elem":
        return decl.elem
    from tetrapod.machinery.cel.escaping import escape

    escaped = escape(name)
    return None if escaped is None else (decl.fields or {}).get(escaped)


def _cost_text(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100.0 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"
