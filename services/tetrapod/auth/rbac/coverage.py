"""The comparison of the rules that a user holds with the rules that the user grants, for the escalation check.

Upstream breaks each granted rule down into rights (one verb on one resource of one group, by one name) and looks for a
held rule that covers each right. The answers here are the same, but the rights are not enumerated, because a rule of 2
kB has a million. Each value of a rule (a verb, a group, …) is mapped to the set of held rules that cover it, one bit
for each rule. A right is missing if the sets of its values have no rule in common. Values with the same set are
compared once, and missing rights are counted by multiplying.

Upstream: staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go, Covers
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from operator import and_, mul, or_
from typing import Any, Final, TypeAlias

from tetrapod.generic.authorization.rules import ALL, Rule, values

PlainRule: TypeAlias = dict[str, Any]

MAX_STEPS: Final = 2_000_000
"""Comparisons of two sets of held rules, about 0.1 µs each. The rules of upstream's bootstrap policy need fewer than a
thousand.
"""
_RULES_PER_STEP: Final = 256
"""Sets of more rules cost more steps, since they take more time and memory: 2 million steps hold 64 MB of sets at
most.
"""

_RESOURCE_KEYS: Final = ("apiGroups", "resources", "verbs", "resourceNames")
_URL_KEYS: Final = ("nonResourceURLs", "verbs")


class TooComplexError(Exception):
    """The error for rules that cannot be compared within the budget of steps."""


class Steps:
    """A budget of steps for comparisons. `spend` takes steps from it, and raises `TooComplexError` if too few are left.

    Args:
        left: the number of steps in the beginning.
    """

    def __init__(self, left: int) -> None:
        self._left = left

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooComplexError


class HeldRules:
    """The rules that a user holds, indexed by the values in their lists.

    For each list (such as `verbs`) and each value in it (such as `get`) there is the set of the rules with that value.
    A set is an int: its bit `i` is 1 if it contains the rule at index `i`. `covering` adds the rules with wildcards.

    Attributes:
        for_any_name: the set of rules without resourceNames. Only they cover a right without a resource name.
        cost: how many of the remaining `Steps` an operation on one set takes; it grows with the number of rules.

    Args:
        rules: the rules that the user holds.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        size = len(rules)
        self.cost = 1 + size // _RULES_PER_STEP
        self.for_any_name = _as_set((i for i, rule in enumerate(rules) if not values(rule, "resourceNames")), size)
        self._with = {key: _Sets(_indexes(rules, key), size) for key in {*_RESOURCE_KEYS, *_URL_KEYS}}
        prefixes = _url_prefixes(rules)
        self._prefixes = _Sets(prefixes, size)
        self._prefix_lengths = sorted({len(prefix) for prefix in prefixes})

    def covering(self, key: str, value: str) -> int:
        """Return the held rules that cover one value in a list of a granted rule, as a bit set; wildcards are applied.

        Args:
            key: the name of the list, such as "verbs".
            value: the value.
        """
        sets = self._with[key]
        if key == "resourceNames":
            return _union(self.for_any_name, sets.of(value))
        if key == "nonResourceURLs":
            lengths = self._prefix_lengths[: bisect_right(self._prefix_lengths, len(value))]
            return reduce(_union, (self._prefixes.of(value[:length]) for length in lengths), sets.of(value))
        covering = _union(sets.of(ALL), sets.of(value))
        if key == "resources" and "/" in value:
            return _union(covering, sets.of(f"*/{value.partition('/')[2]}"))
        return covering


class _Sets:
    """The sets of held rules that contain each value of one list, such as `verbs`; each is computed on first use.

    Bit `i` of a set is the rule at index `i`.

    Args:
        indexes: for each value (or prefix of a URL) the indexes of the rules that contain it.
        size: the number of rules.
    """

    def __init__(self, indexes: Mapping[str, Sequence[int]], size: int) -> None:
        self._size = size
        self._indexes = indexes
        self._made: dict[str, int] = {}

    def of(self, value: str) -> int:
        made = self._made.get(value)
        if made is None:
            if value not in self._indexes:
                return 0
            made = self._made[value] = _as_set(self._indexes[value], self._size)
        return made


def _indexes(rules: Sequence[Rule], key: str) -> Mapping[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for i, rule in enumerate(rules):
        for value in values(rule, key):
            indexes.setdefault(value, []).append(i)
    return indexes


def _url_prefixes(rules: Sequence[Rule]) -> Mapping[str, list[int]]:
    """Return the indexes of the rules by the URL prefixes that they cover.

    As upstream, all trailing stars are removed.

    Args:
        rules: the held rules.
    """
    prefixes: dict[str, list[int]] = {}
    for url, indexes in _indexes(rules, "nonResourceURLs").items():
        if url.endswith(ALL):
            prefixes.setdefault(url.rstrip(ALL), []).extend(indexes)
    return prefixes


def _as_set(indexes: Iterable[int], size: int) -> int:
    """Return a bit set: the integer in which the bits at these indexes are 1.

    The bits are set in a bytearray, which takes linear time; `|= 1 << i` would copy the integer for each bit.

    Args:
        indexes: the bits.
        size: more than the highest index.
    """
    bits = bytearray(size // 8 + 1)
    for i in indexes:
        bits[i >> 3] |= 1 << (i & 7)
    return int.from_bytes(bits, "little")


def _union(left: int, right: int) -> int:
    """Return the union of two sets of rules (bit sets), `left | right`, without a copy if one of them is empty."""
    return left | right if left and right else left or right


class MissingRights:
    """The rights of granted rules that the held rules do not cover; iteration yields one rule for each right.

    A right is one value from each list of a rule, such as one verb on one resource of one API group.

    Args:
        held: the rules that the user holds.
        granted: the rules to grant.
        steps: the budget, which the constructor and iterations use up.

    Attributes:
        total: the number of rights, counted as upstream does: a value that a list repeats counts again.

    Raises:
        TooComplexError: from the constructor and from iteration, when the steps are used up.
    """

    def __init__(self, held: HeldRules, granted: Iterable[Rule], steps: Steps) -> None:
        rule_rights = (_RuleRights(held, rule, keys, steps) for rule in granted for keys in (_RESOURCE_KEYS, _URL_KEYS))
        self._rule_rights = [rights_of_rule for rights_of_rule in rule_rights if rights_of_rule.missing]
        self.total = sum(rights_of_rule.missing for rights_of_rule in self._rule_rights)

    def __iter__(self) -> Iterator[PlainRule]:
        """Yield one rule for each right, in upstream's order.

        Raises:
            TooComplexError: finding the next right takes too many steps.
        """
        for rights_of_rule in self._rule_rights:
            yield from rights_of_rule.rights()


def missing_rights(held: Sequence[Rule], granted: Iterable[Rule], max_steps: int = MAX_STEPS) -> MissingRights:
    """Return the rights of `granted` that no rule of `held` covers.

    Args:
        held: the rules that the user holds.
        granted: the rules of the role.
        max_steps: the most comparisons of two sets of held rules, about 0.1 µs each.

    Raises:
        TooComplexError: the comparison takes too many steps. The caller must treat the rules as not covered.
    """
    return MissingRights(HeldRules(held), granted, Steps(max_steps))


def first_missing(missing: MissingRights, most: int, most_characters: int) -> list[PlainRule]:
    """Return at most the first `most` missing rights, with at most `most_characters` characters in all their values.

    The list is shorter if finding them takes too many steps.
    """
    first: list[PlainRule] = []
    try:
        for right in islice(missing, most):
            most_characters -= sum(len(listed[0]) for listed in right.values())
            if most_characters < 0:
                break
            first.append(right)
    except TooComplexError:
        pass  # they are only listed in a message
    return first


class _RuleRights:
    """The rights of one granted rule: all combinations of one value from each of its lists.

    Args:
        held: the rules that the user holds.
        rule: the granted rule.
        keys: the names of the lists to combine: those of resources, or verbs and nonResourceURLs.
        steps: the budget.

    Attributes:
        missing: the number of these rights that the held rules do not cover; 0 if one of the lists is empty.

    Raises:
        TooComplexError: from the constructor and from iteration of `rights`, when the steps are used up.
    """

    def __init__(self, held: HeldRules, rule: Rule, keys: Sequence[str], steps: Steps) -> None:
        self._steps = steps
        self._cost = held.cost
        self._keys = [key for key in keys if key != "resourceNames" or values(rule, key)]
        self._values = [values(rule, key) for key in self._keys]
        self._start = -1 if "resourceNames" in self._keys else held.for_any_name
        self.missing = 0
        if all(self._values):
            self._covering = [
                self._sets(held, key, listed) for key, listed in zip(self._keys, self._values, strict=True)
            ]
            self._prepare()
            self.missing = self._count(0, self._start)

    def _sets(self, held: HeldRules, key: str, listed: Sequence[str]) -> Mapping[str, int]:
        """Return the set of held rules (as bits) that cover each value of a list. Equal sets are the same object.

        Args:
            held: the held rules.
            key: the name of the list, such as "verbs".
            listed: its values.

        Raises:
            TooComplexError: the steps are used up.
        """
        covering: dict[str, int] = {}
        shared: dict[int, int] = {}
        for value in listed:
            if value not in covering:
                covering_set = held.covering(key, value)
                if covering_set not in shared:
                    self._steps.spend(self._cost)
                covering[value] = shared.setdefault(covering_set, covering_set)
        return covering

    def _prepare(self) -> None:
        """Precompute the data with which `_count` avoids visiting each combination of values.

        The lists are those of the granted rule, such as its verbs and its resources. Each value in a list has the set
        of the held rules that cover it, an integer with a bit for each rule. This is computed:

        - For each list, the distinct sets of its values, each with the number of values that have it.
        - For each list, the union of these sets.
        - For each list, the intersection of the sets of all values in it and in the lists after it.
        - For each list, the number of combinations of one value from it and from each list after it.
        """
        self._kinds = [
            list(Counter(map(covering.__getitem__, listed)).items())
            for covering, listed in zip(self._covering, self._values, strict=True)
        ]
        self._in_any = [reduce(or_, covering.values()) for covering in self._covering]
        self._in_all = _from_the_end(and_, [reduce(and_, covering.values()) for covering in self._covering], -1)
        self._combinations = _from_the_end(mul, list(map(len, self._values)), 1)
        self._counted: list[dict[int, int]] = [{} for _ in self._keys]

    def _count(self, depth: int, held: int) -> int:
        """Return the number of missing combinations of the lists from `depth` on.

        Args:
            depth: the index of a list, in the order of the constructor's `keys`. After the last list the result is
                0 or 1.
            held: the set of held rules that cover the values chosen from the lists before, as bits; 0 for none.

        Raises:
            TooComplexError: the steps are used up.
        """
        if depth == len(self._keys):
            return 0 if held else 1
        if held & self._in_all[depth]:
            return 0
        if not held & self._in_any[depth]:
            return self._combinations[depth]
        counted = self._counted[depth]
        if (known := counted.get(held)) is not None:
            return known
        kinds = self._kinds[depth]
        self._steps.spend(len(kinds) * self._cost)
        total = sum(times * self._count(depth + 1, held & covering) for covering, times in kinds)
        counted[held] = total
        return total

    def rights(self) -> Iterator[PlainRule]:
        for chosen in self._missing_from(0, self._start):
            yield {key: [value] for key, value in zip(self._keys, chosen, strict=True)}

    def _missing_from(self, depth: int, held: int) -> Iterator[tuple[str, ...]]:
        if depth == len(self._keys):
            yield ()
            return
        covering = self._covering[depth]
        for value in self._values[depth]:
            self._steps.spend(self._cost)
            remaining = held & covering[value]
            if self._count(depth + 1, remaining):
                for rest in self._missing_from(depth + 1, remaining):
                    yield (value, *rest)


def _from_the_end(combine: Callable[[int, int], int], items: Sequence[int], end: int) -> list[int]:
    """Return, for each index, the combination of the items from that index on and of `end`: a fold from the right.

    Args:
        combine: returns the result for an index, called with the result for the next index and the item at the index.
        items: the items.
        end: the result for the index after the last item, which is not in the returned list.
    """
    combined = [end]
    for item in reversed(items):
        combined.append(combine(combined[-1], item))
    return combined[:0:-1]
