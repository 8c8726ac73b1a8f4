"""Policies and bindings, parsed once per revision.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/accessor.go, mutating/accessor.go;
generic/policy_matcher.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.matching import Namespaces, ParsedSelector, Rule, find, selects_object
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.status import StatusError

GROUP: Final = "admissionregistration.k8s.io"


def policy_storage(resource: str, kind: str) -> StorageConfig:
    """Return the storage configuration of a policy resource, given its plural name and kind."""
    return StorageConfig(prefix=resource, api_version=f"{GROUP}/v1", kind=kind, namespaced=False)


class Match:
    """A parsed MatchResources: which requests a policy or binding applies to.

    Without resourceRules it applies to all resources that the selectors and excludeResourceRules admit.

    Args:
        constraints: the MatchResources object, with defaults: a missing selector selects nothing.
    """

    def __init__(self, constraints: Object) -> None:
        self._rules = [Rule.from_object(rule) for rule in constraints.get("resourceRules") or ()]
        self._excluded = [Rule.from_object(rule) for rule in constraints.get("excludeResourceRules") or ()]
        self._equivalent = constraints.get("matchPolicy") == "Equivalent"
        self._namespaces = ParsedSelector(constraints.get("namespaceSelector"))
        self._objects = ParsedSelector(constraints.get("objectSelector"))

    async def find(self, attributes: Attributes, namespaces: Namespaces) -> Equivalent | None:
        """Return the resource and kind under which the rules match the request, or None if it does not match.

        Raises:
            StatusError: the rules match, but the namespace does not exist (404) or a selector is invalid (500).
        """
        failure: Failure[StatusError] | None = None
        try:
            if not await namespaces.selects(self._namespaces, attributes):
                return None
        except StatusError as error:
            failure = Failure(error)
        try:
            if not selects_object(self._objects, attributes):
                return None
        except StatusError as error:
            failure = failure or Failure(error)
        if find(self._excluded, attributes, equivalent=self._equivalent) is not None:
            return None
        match = Equivalent(attributes.resource, attributes.kind)
        if self._rules:
            matched_kind = find(self._rules, attributes, equivalent=self._equivalent)
            if matched_kind is None:
                return None
            match = matched_kind
        if failure is not None:
            raise failure.error()
        return match


@dataclass(slots=True)
class Policy:
    """A parsed policy, validating or mutating.

    Attributes:
        name: the name of the policy.
        spec: its spec, which must not be modified.
        revision: the revision of the stored policy; 0 for a policy in a manifest file.
        match: its matchConstraints.
        fails: whether errors reject the request (failurePolicy is not Ignore).
        param_kind: the kind of its parameters; None if it has none.
    """

    name: str
    spec: Object
    revision: int
    match: Match
    fails: bool
    param_kind: GroupVersionKind | None

    @classmethod
    def from_entry(cls, entry: Entry) -> Policy:
        """Parse a stored policy. The result contains parts of the cached object, which must not be modified."""
        return cls.from_object(entry.peek(), entry.revision)

    @classmethod
    def from_object(cls, obj: Object, revision: int = 0) -> Policy:
        """Parse a policy, stored or in a manifest file. The result contains parts of the object.

        `revision` is the revision of the stored policy, and 0 for one in a manifest file.
        """
        spec = obj.get("spec") or {}
        kind = spec.get("paramKind")
        return cls(
            obj["metadata"]["name"],
            spec,
            revision,
            Match(spec.get("matchConstraints") or {}),
            spec.get("failurePolicy") != "Ignore",
            GroupVersion.parse(kind.get("apiVersion") or "").with_kind(kind.get("kind") or "") if kind else None,
        )


@dataclass(slots=True)
class Binding:
    """A parsed binding of either kind of policy.

    Attributes:
        name: the name of the binding.
        policy: the name of the policy.
        match: its matchResources; None if it has none.
        param_ref: its paramRef; None if it has none.
        actions: its validationActions: Deny, Warn and Audit; empty for a mutating policy.
    """

    name: str
    policy: str
    match: Match | None
    param_ref: Object | None
    actions: list[str]

    @classmethod
    def from_entry(cls, entry: Entry) -> Binding:
        """Parse a stored binding. The result contains parts of the cached object, which must not be modified."""
        return cls.from_object(entry.peek())

    @classmethod
    def from_object(cls, obj: Object) -> Binding:
        """Parse a binding, stored or in a manifest file. The result contains parts of the object."""
        spec = obj.get("spec") or {}
        match = spec.get("matchResources")
        return cls(
            obj["metadata"]["name"],
            spec.get("policyName") or "",
            Match(match) if match is not None else None,
            spec.get("paramRef"),
            spec.get("validationActions") or [],
        )

    async def matches(self, attributes: Attributes, namespaces: Namespaces) -> bool:
        """Return whether the binding applies to the request; True for a binding without matchResources.

        Raises:
            StatusError: the rules match, but the namespace does not exist (404) or a selector is invalid (500).
        """
        return self.match is None or await self.match.find(attributes, namespaces) is not None
