"""`builtin`: builds the `ResourceDefinition` of a built-in resource from discovery facts and a short declaration.

Names, scope, verbs, short names, categories, kinds of subresources and hashes are facts (machinery/types). The
declaration, which is next to the code of the kind, adds the strategy, the columns and the handlers of subresources. A
subresource that the facts have and the declaration lacks is an error, so that discovery lists only what is served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from tetrapod.generic.configuration.effective_version import EffectiveVersion, effective_version
from tetrapod.generic.configuration.version import RELEASE
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.stored_versions import storage_version_hash, stored_version
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery import types
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.table import TableConvertor
from tetrapod.machinery.types.lifecycles import deprecation_warning, forget_lifecycles
from tetrapod.machinery.types.resources import ResourceFacts, resource_facts

_facts = cache(resource_facts)


def forget_facts() -> None:
    """Clear the cache of the discovery data that `builtin` reads, once all definitions are built."""
    _facts.cache_clear()
    forget_lifecycles()


def builtin(  # noqa: PLR0913 - a declaration by keywords
    group: str,
    resource: str,
    strategy: Strategy,
    *,
    versions: Sequence[str] = ("v1",),
    storage_version: str = "",
    storage_prefix: str = "",
    table: TableConvertor | None = None,
    subresources: Mapping[str, Strategy | Rest] | None = None,
    rest: Rest | None = None,
    convert: Callable[[Object, str], Object] | None = None,
    storage_group: str | None = None,
    from_former: Callable[[bytes], bytes] | None = None,
    missing_fields: Mapping[str, Sequence[tuple[str, ...]]] = MappingProxyType({}),
) -> ResourceDefinition:
    """Return the definition of a built-in resource, made of upstream's discovery data ("facts") and these arguments.

    Facts are names, scope, verbs, short names, categories and the kinds of subresources (machinery/types).
    `strategy.namespaced` is set to the scope of the resource.

    Args:
        group: the API group, "" for the core group.
        resource: the plural name.
        strategy: the rules of the kind.
        versions: the served versions. The facts are those of the first one.
        storage_version: the version in which objects are stored and the strategy gets them, if the versions differ in
            more than apiVersion; it defaults to the first one. Otherwise it is that of `stored_version`.
        storage_prefix: defaults to the plural name, as upstream.
        table: the columns of `kubectl get`; None means Name and Created At.
        subresources: the strategy or handler of each subresource that the facts list.
        rest: the handler of a resource without storage.
        convert: returns a copy of an object in another version; None if the versions differ only in apiVersion.
        storage_group: the group under which objects are stored, if it differs (events).
        from_former: converts stored values of versions that are no longer served.
        missing_fields: the paths of the fields that a version lacks, by version.

    Raises:
        LookupError: the facts lack the resource or one of `subresources`, or `subresources` lacks one that the facts
            list (KeyError).
    """
    facts = _find(group, versions[0], resource)
    strategy.namespaced = facts.namespaced
    undeclared = dict(subresources or {})
    declared = [
        Subresource(
            name=sub.name,
            verbs=sub.verbs,
            kind=sub.kind if sub.kind != facts.kind else None,
            strategy=handler if isinstance(handler, Strategy) else None,
            rest=handler if isinstance(handler, Rest) else None,
        )
        for sub in facts.subresources
        for handler in (undeclared.pop(sub.name),)
    ]
    if undeclared:
        raise LookupError(f"{group}/{resource} has no subresources {sorted(undeclared)}")
    kind = facts.kind.kind
    stored, hashed = storage_version or versions[0], facts.storage_version_hash
    if convert is None:
        stored = stored_version(group, kind, versions, effective_version())
        if hashed and stored != stored_version(group, kind, versions, EffectiveVersion()):
            hashed = storage_version_hash(group, stored, kind)
    return ResourceDefinition(
        group=group,
        resource=resource,
        kind=kind,
        singular=facts.singular,
        namespaced=facts.namespaced,
        versions=versions,
        storage_version=stored,
        storage_prefix=storage_prefix or resource,
        verbs=facts.verbs,
        schema=_schema_of(group, kind),
        strategy=strategy,
        list_kind=f"{kind}List",
        short_names=facts.short_names,
        categories=facts.categories,
        subresources=declared,
        table=table and replace(table, described=f"{resource}.{group}" if group else resource),
        rest=rest,
        convert=convert,
        storage_version_hash=hashed,
        deprecated=_warnings(group, kind, versions),
        storage_group=storage_group,
        from_former=from_former,
        missing_fields=missing_fields,
    )


def _warnings(group: str, kind: str, versions: Sequence[str]) -> dict[str, str]:
    """Return the text of the Warning header for each deprecated version of a kind, by the name of the version."""
    texts = {v: deprecation_warning(str(GroupVersion(group, v)), kind, RELEASE) for v in versions}
    return {version: text for version, text in texts.items() if text}


def _find(group: str, version: str, resource: str) -> ResourceFacts:
    for facts in _facts(group, version):
        if facts.name == resource:
            return facts
    raise LookupError(f"no facts of {group}/{version} {resource}")


def _schema_of(group: str, kind: str) -> Callable[[str], SchemaNode]:
    def schema(version: str) -> SchemaNode:
        return types.schema_for(GroupVersionKind(group, version, kind))

    return schema
