"""Converts label and field selectors of lists, watches and collection deletes to storage queries.

A selector that names one object becomes a query for its key.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/selection_predicate.go; pkg/registry/generic/registry/store.go,
ListPredicate
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from sys import intern
from typing import Final, NamedTuple

from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.keys import object_key, root_key
from tetrapod.generic.storage.entry import EVERYTHING, Entry, IndexedValue, Predicate
from tetrapod.machinery import field_selectors, labels, sharding
from tetrapod.machinery.field_selectors import FieldRequirement, FieldSelector
from tetrapod.machinery.names import validate_namespace_name
from tetrapod.machinery.sharding import ShardSelector
from tetrapod.machinery.status import StatusError, bad_request


class Selection(NamedTuple):
    """The part of a list or watch query that decides which objects it returns.

    Attributes:
        prefix: the beginning of their keys, or the whole key if `single` is set.
        predicate: the label and field selectors.
        single: whether the query can only return one object, because it selects metadata.name.
        shard: the shard selector; None without one.
    """

    prefix: str
    predicate: Predicate
    single: bool
    shard: ShardSelector | None = None

    def within(self, shard: ShardSelector) -> Selection:
        """Return a selection of those objects that are in a shard too."""
        predicate = replace(self.predicate, shard=_shard_match(shard))
        return self._replace(predicate=predicate, shard=shard)


def select(
    definition: ResourceDefinition,
    namespace: str,
    label_selector: str = "",
    field_selector: str = "",
    version: str = "",
) -> Selection:
    """Return the selection for a request.

    Args:
        namespace: the namespace of the request; "" for all namespaces and cluster-scoped resources.
        label_selector: the parameter labelSelector; "" selects everything.
        field_selector: the parameter fieldSelector; "" selects everything.
        version: the version of the request, in whose terms the field selector is.

    Raises:
        StatusError: 400 for a malformed selector, a field that the kind does not support, or a namespace of dots.
    """
    if not label_selector and not field_selector:
        return Selection(root_key(definition.namespaced, namespace, definition.storage_prefix), EVERYTHING, False)
    by_label = _label_match(label_selector)
    selector = parse_fields(definition, field_selector, version)
    predicate = (
        Predicate(by_label, _field_match(definition, selector), index=_index(definition, selector))
        if by_label or not selector.empty
        else EVERYTHING
    )
    if not namespace and definition.namespaced:
        selected_namespace = selector.requires_exact_match("metadata.namespace")
        if selected_namespace and not validate_namespace_name(selected_namespace, False):
            namespace = selected_namespace
    key = _single_key(definition, namespace, selector)
    if key is not None:
        return Selection(key, predicate, True)
    return Selection(root_key(definition.namespaced, namespace, definition.storage_prefix), predicate, False)


def _shard_match(shard: ShardSelector) -> Callable[[Entry], bool]:
    if shard.field == sharding.NAMESPACE:
        return lambda entry: shard.contains(entry.namespace)
    return lambda entry: shard.contains(entry.uid)


def parse_fields(definition: ResourceDefinition, text: str, version: str) -> FieldSelector:
    """Parse a field selector and translate its labels from the version of the request to those of the strategy.

    Raises:
        StatusError: 400 for a malformed selector, or a field that the kind does not support.
    """
    if not text:
        return field_selectors.EVERYTHING
    field_label = definition.strategy.field_label
    try:
        return field_selectors.parse(text).transform(lambda label, value: field_label(version, label, value))
    except ValueError as error:
        raise bad_request(str(error)) from None


def _label_match(text: str) -> Callable[[Mapping[str, str]], bool] | None:
    try:
        selector = labels.parse(text)
    except ValueError as error:
        raise bad_request(str(error)) from None
    return None if selector.empty else selector.matcher


_IN_KEY: Final = ("metadata.name", "metadata.namespace")


def _index(definition: ResourceDefinition, selector: FieldSelector) -> IndexedValue | None:
    """Return the value of the indexed field that a selector requires, or None without one."""
    field = definition.strategy.indexed_field
    value = selector.requires_exact_match(field) if field else None
    return None if value is None else IndexedValue(field, value, _indexed_value(definition))


def _indexed_value(definition: ResourceDefinition) -> Callable[[Entry], str]:
    """Return a function that returns an entry's value of the indexed field, which is computed once for each entry.

    The watches of N kubelets compare it with N nodes. To parse every pod for each of them took 70 % of the CPU time in
    which 100 kubelets opened their watches.
    """
    field, fields = definition.strategy.indexed_field, definition.strategy.selectable_fields

    def value(entry: Entry) -> str:
        known = entry.indexed
        if known is None:
            known = entry.indexed = intern(fields(entry.peek()).get(field, ""))
        return known

    return value


def _field_match(definition: ResourceDefinition, selector: FieldSelector) -> Callable[[Entry], bool] | None:
    if selector.empty:
        return None
    conditions = _conditions(selector.requirements)
    cheap = [condition for condition in conditions if condition.field in _IN_KEY]
    index = definition.strategy.indexed_field
    by_index = next((condition for condition in conditions if index and condition.field == index), None)
    deep = [condition for condition in conditions if condition.field not in (*_IN_KEY, index)]
    selectable_fields, indexed_value = definition.strategy.selectable_fields, _indexed_value(definition)

    def matches(entry: Entry) -> bool:
        for condition in cheap:
            if not condition.matches(entry.name if condition.field == "metadata.name" else entry.namespace):
                return False
        if by_index is not None and not by_index.matches(indexed_value(entry)):
            return False
        if not deep:
            return True
        values = selectable_fields(entry.peek())
        return all(condition.matches(values.get(condition.field, "")) for condition in deep)

    return matches


class _Condition(NamedTuple):
    """All terms of a selector about one field, so that matching takes no longer the more terms there are.

    Attributes:
        field: the name of the field.
        allowed: the values that the terms with `=` allow: one, or none if they differ; None without such terms.
        excluded: the values of the terms with `!=`.
    """

    field: str
    allowed: frozenset[str] | None
    excluded: frozenset[str]

    def matches(self, value: str) -> bool:
        return value not in self.excluded and (self.allowed is None or value in self.allowed)


def _conditions(requirements: Iterable[FieldRequirement]) -> list[_Condition]:
    equal: dict[str, set[str]] = {}
    different: dict[str, set[str]] = {}
    for field, op, value in requirements:
        (equal if op == "=" else different).setdefault(field, set()).add(value)
    conditions = []
    for field in dict.fromkeys((*equal, *different)):
        values = equal.get(field)
        allowed = None if values is None else frozenset(values if len(values) == 1 else ())
        conditions.append(_Condition(field, allowed, frozenset(different.get(field, ()))))
    return conditions


def _single_key(definition: ResourceDefinition, namespace: str, selector: FieldSelector) -> str | None:
    """Return the key of the object that the selector requires by metadata.name.

    The result is None if the selector does not require a name, or if the key would be invalid.
    """
    name = selector.requires_exact_match("metadata.name")
    if not name:
        return None
    try:
        return object_key(definition.namespaced, namespace, name, definition.storage_prefix)
    except StatusError:
        return None
