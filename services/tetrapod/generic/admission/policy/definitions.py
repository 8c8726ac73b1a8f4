"""Policies and bindings as the plugins use them: parsed once per revision.

Upstream: accessor.go of validating and mutating, and generic/policy_matcher.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.matching import Namespaces, ParsedSelector, Rule, find, selects_object
from tetrapod.generic.storage.interface import Entry, StorageConfig
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.status import StatusError

GROUP: Final = "admissionregistration.k8s.io"


def stored(resource: str, kind: str) -> StorageConfig:
    return StorageConfig(prefix=resource, api_version=f"{GROUP}/v1", kind=kind, namespaced=False)


class Match:
    """A MatchResources."""

    def __init__(self, given: Object) -> None:
        self._rules = [Rule.of(rule) for rule in given.get("resourceRules") or ()]
        self._excluded = [Rule.of(rule) for rule in given.get("excludeResourceRules") or ()]
        self._equivalent = given.get("matchPolicy") == "Equivalent"
        self._namespaces = ParsedSelector(given.get("namespaceSelector"))
        self._objects = ParsedSelector(given.get("objectSelector"))

    async def find(self, attributes: Attributes, namespaces: Namespaces) -> Equivalent | None:
        """As what the request is seen; None if it is not meant.

        Raises:
            StatusError: the rules match, but a selector cannot be asked.
        """
        trouble: StatusError | None = None
        try:
            if not await namespaces.selects(self._namespaces, attributes):
                return None
        except StatusError as error:
            trouble = error
        try:
            if not selects_object(self._objects, attributes):
                return None
        except StatusError as error:
            trouble = trouble or error
        if find(self._excluded, attributes, equivalent=self._equivalent) is not None:
            return None
        found = Equivalent(attributes.resource, attributes.kind)
        if self._rules:
            seen_as = find(self._rules, attributes, equivalent=self._equivalent)
            if seen_as is None:
                return None
            found = seen_as
        if trouble is not None:
            raise trouble
        return found


@dataclass(slots=True)
class Policy:
    name: str
    spec: Object
    revision: int
    match: Match
    fails: bool
    """Whether an error refuses the request (failurePolicy)."""
    param_kind: GroupVersionKind | None

    @classmethod
    def of(cls, entry: Entry) -> Policy:
        obj = entry.peek()
        spec = obj.get("spec") or {}
        kind = spec.get("paramKind")
        return cls(
            entry.name,
            spec,
            entry.revision,
            Match(spec.get("matchConstraints") or {}),
            spec.get("failurePolicy") != "Ignore",
            GroupVersion.parse(kind.get("apiVersion") or "").with_kind(kind.get("kind") or "") if kind else None,
        )


@dataclass(slots=True)
class Binding:
    name: str
    policy: str
    match: Match | None
    param_ref: Object | None
    actions: list[str]

    @classmethod
    def of(cls, entry: Entry) -> Binding:
        spec = entry.peek().get("spec") or {}
        match = spec.get("matchResources")
        return cls(
            entry.name,
            spec.get("policyName") or "",
            Match(match) if match is not None else None,
            spec.get("paramRef"),
            spec.get("validationActions") or [],
        )

    async def matches(self, attributes: Attributes, namespaces: Namespaces) -> bool:
        return self.match is None or await self.match.find(attributes, namespaces) is not None
