"""The estimated costs of calls, and the estimated sizes of their results.

`estimate` uses them before an expression is evaluated; `runtime_costs` has the actual costs. Costs and sizes are ranges
from the lowest to the highest value.

A rule (`_Rule`) estimates the calls of some functions. It gets the known sizes of values, the receiver (None for a call
without one) and the arguments. It returns the cost of the call without that of its operands, and the size of its
result, which is None if the rule does not determine it. Instead of this pair it returns None for a call to which it
does not apply.

Each call is looked up in three tables of rules, in this order:
- by overload: cel-go ext/lists.go and ext/sets.go
- by function: k8s.io/apiserver/pkg/cel/library/cost.go
- by overload: cel-go checker/cost.go, functionCost
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Final, TypeAlias

from tetrapod.machinery.cel.cost_operands import Operand, Sizes
from tetrapod.machinery.cel.nodes import Call, Literal
from tetrapod.machinery.cel.runtime_costs import AUTHORIZATION_COST, LIST_COST, STRUCT_COST
from tetrapod.machinery.cel.sizes import MAX, ONE, ZERO, Range, fixed

_TENTH: Final = 0.1
_QUARTER: Final = 0.25
_COMPARABLE: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)
_UNIT_EQUALITY: Final = frozenset(
    {"kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"}
    | {
        f"kubernetes.authorization.{name}"
        for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
    }
)

Costed: TypeAlias = tuple[Range, Range | None]
"""The cost of a call, and the size of its result (None if the call does not determine it)."""
_Rule: TypeAlias = Callable[[Sizes, Operand | None, Sequence[Operand]], Costed | None]


def call_cost(
    sizes: Sizes, node: Call, overload: str, target: Operand | None, args: Sequence[Operand], costs: Sequence[Range]
) -> Costed:
    """Return the estimated cost of a call including its arguments, and the estimated size of its result.

    The size is None if the rule for the call does not determine it.

    Args:
        sizes: the sizes of values that are known so far. For `+` and `? :`, the call records in it which sizes the
            elements (or keys and values) of the result can have, by `Sizes.unite_entries`.
        node: the call.
        overload: one of the overloads that the call may resolve to.
        target: the receiver, or None.
        args: the arguments.
        costs: the cost of evaluating each argument.
    """
    rule = _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(node.function)
    estimated = rule(sizes, target, args) if rule is not None else None
    if estimated is None and node.function == "_==_":
        estimated = _library_equality(sizes, args)
    if estimated is None and (overload in ("logical_and", "logical_or", "conditional") or overload.startswith("add_")):
        special = _operator(sizes, node, overload, args, costs)
        if special is not None:
            return special
    if estimated is None and overload in _DEFAULTS:
        estimated = _DEFAULTS[overload](sizes, target, args)
    cost, size = estimated or (ONE, None)
    for argument_cost in costs:
        cost = cost.plus(argument_cost)
    return cost, size


def _operator(
    sizes: Sizes, node: Call, overload: str, args: Sequence[Operand], costs: Sequence[Range]
) -> Costed | None:
    """Return the cost and size of `&&`, `||`, `?:` or `+`, including the arguments, or None for other overloads.

    Other calls cost the sum of all arguments. `&&`, `||` and `?:` do not evaluate all of them. The result of `?:` or
    `+` consists of elements (or keys and values) of the operands, and `sizes` records their sizes for it.

    Args:
        sizes: the known sizes of values. Those of the result's elements, or keys and values, are recorded in it.
        node: the call.
        overload: one of the overloads that the call may resolve to.
        args: the arguments.
        costs: the cost of evaluating each argument.
    """
    if overload in ("logical_and", "logical_or"):
        return Range(costs[0].min, costs[0].plus(costs[1]).max), None
    if overload == "conditional":
        sizes.unite_entries(node, node.args[1], node.args[2])
        size = _computed(args[1]).union(_computed(args[2]))
        return costs[0].plus(costs[1].union(costs[2])), size
    if overload not in ("add_string", "add_bytes", "add_list"):
        return None
    size = _computed(args[0]).plus(_computed(args[1]))
    sizes.unite_entries(node, node.args[0], node.args[1])
    cost = ONE if overload == "add_list" else size.scaled(_TENTH)
    return cost.plus(costs[0]).plus(costs[1]), size


def _computed(operand: Operand) -> Range:
    """Return the computed size of an operand, or the range from 0 to `MAX` if its size was not computed.

    The maximum that the operand's declared type allows (see `Sizes.size_of`) is not considered.
    """
    return Range(0, MAX) if operand.size is None else operand.size


def _unit(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    return ONE, None


def _check(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    return fixed(AUTHORIZATION_COST), None


def _selector(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    """Return the cost of `fieldSelector` or `labelSelector`, with None as the size of the call's result.

    The cost has three parts: parsing the selector's text, a list of requirements, and one requirement for every two
    characters of the text. Every call has such a cost, so None is never returned instead of the pair.

    Args:
        sizes: the sizes of values that are known so far.
        target: the receiver, which is not used.
        args: the arguments, of which the first is the selector's text.
    """
    length = sizes.size_of(args[0])
    requirements = length.scaled(0.5).scaled(float(LIST_COST + STRUCT_COST))
    return fixed(LIST_COST).plus(length.scaled(_TENTH)).plus(requirements), None


def _over_elements(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    """Return the cost of a call that visits all elements of its receiver, or all characters of a string.

    The size of the call's result is None. For a call without receiver, None is returned instead of cost and size.

    Args:
        sizes: the sizes of values that are known so far.
        target: the receiver; None for a call without one.
        args: the arguments.
    """
    if target is None:
        return None
    size, elements, each = sizes.size_of(target), sizes.elements(target), ONE
    if elements is None:  # a string, which has indexOf and lastIndexOf too
        return size.scaled(_TENTH), None
    if elements.type.kind in ("string", "bytes"):
        each = each.plus(sizes.size_of(elements).scaled(_TENTH))
    return size.times(each), None


def _includes(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    """Return the cost of `includes`, whose receiver may be of unknown type: it then visits each of its elements."""
    if target is not None and sizes.elements(target) is None:
        return sizes.size_of(target).times(ONE), None
    return _over_elements(sizes, target, args)


def _argument(factor: float, *, keeps_size: bool = False) -> _Rule:
    """Return a rule for calls that cost `factor` for each unit of the first argument's size.

    The rule does not apply to calls without arguments.

    Args:
        factor: the cost of one unit.
        keeps_size: whether the result has the size of that argument; otherwise its size is not determined.
    """

    def rule(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
        if not args:
            return None
        size = sizes.size_of(args[0])
        return size.scaled(factor), size if keeps_size else None

    return rule


def _receiver(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    if target is None:
        return None
    size = sizes.size_of(target)
    return size.scaled(_TENTH), size


def _replace(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    """Return the cost of `replace`, and the size of its result.

    The size depends on how often the replaced text may occur in the string. For a call without receiver or arguments,
    None is returned instead of the pair.

    Args:
        sizes: the sizes of values that are known so far.
        target: the receiver; None for a call without one.
        args: the arguments.
    """
    if target is None or len(args) < 2:
        return None
    size, old, new = sizes.size_of(target), sizes.size_of(args[0]), sizes.size_of(args[1])
    most, most_kept = 0, 0
    if old.min == 0:
        most, most_kept = min(size.max + 1, MAX), size.max
    elif new.max <= old.min:
        most_kept = size.max
    else:
        most = min(ceil(float(size.max) / float(old.min)), MAX)
    least, least_kept = 0, 0
    if old.max == 0:
        least, least_kept = min(size.min + 1, MAX), size.min
    elif old.max <= new.min:
        least_kept = size.min
    else:
        least = ceil(float(size.min) / float(old.max))
    return size.scaled(2 * _TENTH), Range(least, most).times(new).plus(Range(least_kept, most_kept))


def _split(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    if target is None:
        return None
    size = sizes.size_of(target)
    most = size.max
    if len(args) > 1 and isinstance(args[1].node, Literal) and args[1].node.value.__class__ is int:
        most = args[1].node.value % (MAX + 1)
    return size.scaled(2 * _TENTH), Range(0, most)


def _join(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    if target is None:
        return None
    count, elements = sizes.size_of(target), sizes.elements(target)
    size = ZERO if elements is None else count.times(sizes.size_of(elements))
    if args:
        separators = Range(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size.plus(sizes.size_of(args[0]).times(separators))
    return size.scaled(_TENTH), size


def _find(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    if target is None or not args:
        return None
    size = sizes.size_of(target)
    cost = size.plus(ONE).scaled(_TENTH).times(sizes.size_of(args[0]).scaled(_QUARTER))
    return cost, Range(0, size.max)


def _contains_ip(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    cost = Range(8, 32).scaled(_TENTH)
    if args[0].type.kind == "string":
        cost = cost.plus(sizes.size_of(args[0]).scaled(_TENTH))
    return cost, None


def _contains_cidr(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    cost = Range(8, 32).scaled(_TENTH).plus(Range(4, 16).scaled(_TENTH)).plus(ONE)
    if args[0].type.kind == "string":
        cost = cost.plus(sizes.size_of(args[0]).scaled(_TENTH))
    return cost, None


def _validate(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    return (sizes.size_of(args[0]).scaled(_TENTH).scaled(128 * _QUARTER), None) if args else None


def _library_equality(sizes: Sizes, args: Sequence[Operand]) -> Costed | None:
    """Return the cost of `==` for two values of a library type of Kubernetes (such as Quantity), or None for others.

    Args:
        sizes: the known sizes of values, which are not used.
        args: the two operands.
    """
    kind = args[0].type
    if kind != args[1].type:
        return None
    if kind.name in _UNIT_EQUALITY:
        return ONE, None
    if kind.name == "kubernetes.NamedFormat":
        return Range(1, 64).scaled(_TENTH), None
    if kind.name == "kubernetes.URL":
        size = args[1].size or ONE
        return Range(1, size.max).scaled(_TENTH), None
    return None


def _listed(factor: float, size: Range) -> Costed:
    """Return the cost of a call that makes a list, and the size of the list.

    Args:
        factor: the cost of one element.
        size: the smallest and the largest number of elements.
    """
    return size.scaled(factor).plus(ONE).plus(fixed(LIST_COST)), size


def _literal_int(operand: Operand, default: int) -> int:
    """Return the value of an int literal (0 if it is negative), or `default` for other operands."""
    node = operand.node
    if not isinstance(node, Literal) or node.value.__class__ is not int:
        return default
    return max(int(node.value), 0)


def _slice(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    if target is None or len(args) != 2:
        return None
    start, end = _literal_int(args[0], 0), _literal_int(args[1], sizes.size_of(target).max)
    return _listed(1, fixed((end - start) % (MAX + 1)))


def _range(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    return _listed(1, fixed(_literal_int(args[0], MAX)))


def _reverse(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    return None if target is None else _listed(1, sizes.size_of(target))


def _flatten(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    depth = _literal_int(args[0], MAX) if args else 1
    return None if target is None else _listed(float(depth), sizes.size_of(target))


def _distinct(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    if target is None:
        return None
    size = sizes.size_of(target)
    return _listed(2.0, size.times(size))


def _sorting(name: str, by_argument: bool) -> _Rule:
    """Return the rule of a function that sorts a list.

    Its cost is that of making a list (`_listed`) with as many elements as the square of the list's length. An element
    costs 2, or 2.1 if texts are compared. As upstream, the size of the result is that square.

    Args:
        name: the type of the elements, or of the keys.
        by_argument: whether the list is sorted by the keys in its first argument; otherwise by its elements.
    """
    factor = 2.0 + (_TENTH if name in ("string", "bytes") else 0.0)

    def rule(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
        operand = args[0] if by_argument else target
        if operand is None:
            return None
        size = sizes.size_of(operand)
        return _listed(factor, size.times(size))

    return rule


def _sets(factor: int) -> _Rule:
    """Return the rule of functions that compare each element of one list with each of another, as `sets.contains`.

    Its cost is the product of both lengths and `factor`, plus 1. The size of the result is not determined.

    Args:
        factor: the cost of comparing one pair of elements.
    """

    def rule(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
        return sizes.size_of(args[0]).times(sizes.size_of(args[1])).scaled(float(factor)).plus(ONE), None

    return rule


def _scan(operand: int) -> _Rule:
    """Return the rule for functions that read the whole text of one operand: a tenth of its length is the cost.

    Args:
        operand: the index of the argument; -1 means the receiver.
    """

    def rule(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
        scanned = target if operand < 0 else args[operand]
        return None if scanned is None else (_computed(scanned).scaled(_TENTH), None)

    return rule


def _to_bytes(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    size = _computed(args[0])
    return size.scaled(_TENTH), Range(size.min, size.max * 4 % (MAX + 1))


def _to_string(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    size = _computed(args[0])
    return size.scaled(_TENTH), Range(size.min // 4, size.max)


def _quote(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    size = _computed(args[0])
    return size.scaled(_TENTH), Range((size.min + 2) % (MAX + 1), (size.max * 2 + 2) % (MAX + 1))


def _in_list(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    return _computed(args[1]), None


def _matches(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    text, pattern = (target, args[0]) if target is not None else (args[0], args[1])
    return _computed(text).plus(ONE).scaled(_TENTH).times(_computed(pattern).scaled(_QUARTER)), None


def _contains(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    return None if target is None else (_computed(target).scaled(_TENTH).times(_computed(args[0]).scaled(_TENTH)), None)


def _compare(sizes: Sizes, target: Operand | None, args: Sequence[Operand]) -> Costed | None:
    most = min(_computed(args[0]).max, _computed(args[1]).max)
    return Range(1 if most > 0 else 0, most).scaled(_TENTH), None


_BY_OVERLOAD: Final[Mapping[str, _Rule]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    **{f"list_{name}_sort": _sorting(name, by_argument=False) for name in _COMPARABLE},
    **{f"list_{name}_sortByAssociatedKeys": _sorting(name, by_argument=True) for name in _COMPARABLE},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "cidr_ip": _unit,
}

_BY_FUNCTION: Final[Mapping[str, _Rule]] = {
    "check": _check,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_elements),
    "includes": _includes,
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _argument(_TENTH, keeps_size=True)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _receiver),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _argument(_TENTH)
    ),
    "ip.isCanonical": _argument(2 * _TENTH),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}
"""Functions that are in none of the tables cost 1."""

_DEFAULTS: Final[Mapping[str, _Rule]] = {
    "string_format": _scan(-1),
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "strings_quote": _quote,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _scan(0)),
    "in_list": _in_list,
    **dict.fromkeys(("matches", "matches_string"), _matches),
    "contains_string": _contains,
    **dict.fromkeys(
        [
            f"{name}_{kind}"
            for name in ("less", "greater", "less_equals", "greater_equals")
            for kind in ("string", "bytes")
        ],
        _compare,
    ),
    **dict.fromkeys(("equals", "not_equals"), _compare),
}
