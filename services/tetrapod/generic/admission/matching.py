"""Matching of requests against webhooks and policies: rules, namespace and object selectors, equivalent resources.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates (rules, namespace, object);
plugin/webhook/generic/webhook.go, ShouldCallHook
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.plugins.namespace_lifecycle import NAMESPACES
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery import labels
from tetrapod.machinery.gvk import GroupResource, GroupVersionResource, Object
from tetrapod.machinery.labels import Selector
from tetrapod.machinery.status import internal_error, not_found

_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
_POLICY_RESOURCES: Final = frozenset(
    GroupResource("admissionregistration.k8s.io", resource)
    for resource in (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
_CONFIGURATION_KINDS: Final = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
VIRTUAL: Final = frozenset(
    {
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
"""Reviews are exempt, so that admission cannot block authentication and authorization checks of the cluster."""
EXCLUDES_VIRTUAL: Final = "ExcludeAdmissionWebhookVirtualResources"
"""The feature gate that exempts reviews from webhooks. They are exempt from policies in any case."""


class Exemption(Enum):
    """The webhooks or policies that are skipped for a request.

    Attributes:
        NONE: none are skipped.
        API: those that are objects of the API are skipped, because they could make their own repair impossible. Those
            in manifest files apply.
        ALL: all are skipped.
    """

    NONE = "all apply"
    API = "only those in manifest files apply, because those of the API could lock the cluster out of repairing them"
    ALL = "none apply"


def exemption_from_webhooks(attributes: Attributes) -> Exemption:
    """Return which webhooks are not called for this request.

    The result is `ALL` for reviews (TokenReview, SubjectAccessReview, …) if the feature gate
    ExcludeAdmissionWebhookVirtualResources is enabled, `API` for objects that configure webhooks or policies, and
    `NONE` for all others.

    Upstream: plugin/webhook/generic/webhook.go, Dispatch; predicates/rules/rules.go,
    IsExemptAdmissionConfigurationResource.
    """
    if attributes.resource.group_resource in VIRTUAL and feature_gates.enabled(EXCLUDES_VIRTUAL):
        return Exemption.ALL
    kind = attributes.kind
    if kind.group == "admissionregistration.k8s.io" and kind.kind in _CONFIGURATION_KINDS:
        return Exemption.API
    return Exemption.NONE


def exemption_from_policies(attributes: Attributes) -> Exemption:
    """Return which policies are not evaluated for this request.

    The result is `ALL` for reviews (TokenReview, SubjectAccessReview, …), `API` for policies and their bindings, and
    `NONE` for all others, including webhook configurations.

    Upstream: plugin/policy/generic/plugin.go, Plugin.Dispatch.
    """
    resource = attributes.resource.group_resource
    if resource in VIRTUAL:
        return Exemption.ALL
    return Exemption.API if resource in _POLICY_RESOURCES else Exemption.NONE


class Rule(NamedTuple):
    """A rule that names the requests which a webhook or policy handles; "*" in a set means everything.

    Attributes:
        operations: the operations, such as CREATE.
        groups: the API groups.
        versions: the API versions.
        resources: pairs of resource and subresource; the second is "" for the resource itself.
        scope: "Cluster", "Namespaced" or "*".
        names: the names of the objects; empty for any. Only policies have them.
    """

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[str] = frozenset()

    @classmethod
    def from_object(cls, rule: Object) -> Rule:
        """Parse one of the `rules` of a webhook, or of the resourceRules of a policy's matchConstraints."""
        resources = []
        for resource_path in rule.get("resources") or ():
            resource, _, subresource = resource_path.partition("/")
            resources.append((resource, subresource))
        return cls(
            frozenset(rule.get("operations") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()),
            tuple(resources),
            rule.get("scope") or "*",
            frozenset(rule.get("resourceNames") or ()),
        )

    def matches(self, attributes: Attributes, resource: GroupVersionResource) -> bool:
        """Return whether the rule matches the request.

        Args:
            attributes: the request.
            resource: the resource to compare with the rule instead of the request's resource. It is the same resource,
                or another version or group that serves the same objects.
        """
        return (
            _listed(self.operations, attributes.operation)
            and _listed(self.groups, resource.group)
            and _listed(self.versions, resource.version)
            and self._matches_resource(resource.resource, attributes.subresource)
            and self._matches_scope(attributes, resource)
            and (not self.names or attributes.name in self.names)
        )

    def _matches_resource(self, resource: str, subresource: str) -> bool:
        return any(r in ("*", resource) and s in ("*", subresource) for r, s in self.resources)

    def _matches_scope(self, attributes: Attributes, resource: GroupVersionResource) -> bool:
        if self.scope == "*":
            return True
        # Requests for a namespace have its name as their namespace, although Namespaces are cluster-scoped.
        clusterwide = resource == _NAMESPACES or not attributes.namespace
        return clusterwide if self.scope == "Cluster" else not clusterwide and self.scope == "Namespaced"


def _listed(items: frozenset[str], requested: str) -> bool:
    return requested in items or "*" in items


def find(rules: Sequence[Rule], attributes: Attributes, *, equivalent: bool) -> Equivalent | None:
    """Return the resource and kind under which a rule matches the request, or None if no rule matches.

    The resource of the request itself is compared with all rules first. Only if none matches are the equivalents of
    the resource compared, rule by rule, and the first match is returned. The webhook or policy receives the objects
    as the kind of the result.

    Args:
        rules: the rules of a webhook or policy.
        attributes: the request.
        equivalent: whether a rule may also match by another group-version of the same objects (matchPolicy
            Equivalent).
    """
    own = attributes.resource
    for rule in rules:
        if rule.matches(attributes, own):
            return Equivalent(own, attributes.kind)
    if not equivalent or attributes.versions is None:
        return None
    others = attributes.versions.equivalents()
    for rule in rules:
        for other in others:
            if other.resource != own and rule.matches(attributes, other.resource):
                return other
    return None


class ParsedSelector:
    """A parsed LabelSelector. If the selector is invalid, `parsed` raises the error, not the constructor.

    Args:
        selector: the LabelSelector object; None selects nothing, and an empty one everything.
    """

    def __init__(self, selector: Mapping[str, object] | None) -> None:
        self._selector: Selector | None = None
        self._error = ""
        try:
            self._selector = labels.from_label_selector(selector)
        except ValueError as error:
            self._error = str(error)

    def parsed(self) -> Selector:
        """Return the selector.

        Raises:
            StatusError: 500, the selector is invalid.
        """
        if self._selector is None:
            raise internal_error(self._error)
        return self._selector


class Namespaces:
    """Reads the namespaces of requests from the storage, to which every service has access.

    Args:
        storages: provides the storage of Namespaces.
    """

    def __init__(self, storages: StorageFactory) -> None:
        self._lister = Lister(storages, NAMESPACES)

    async def get(self, name: str) -> Object:
        """Return a namespace, which is shared and must not be modified.

        Raises:
            StatusError: 404, it does not exist.
        """
        # A namespace that another server has just created may not be in the cache yet.
        namespace = await self._lister.find("", name)
        if namespace is None:
            raise not_found(GroupResource("", "namespaces"), name)
        return namespace

    async def selects(self, selector: ParsedSelector, attributes: Attributes) -> bool:
        """Return whether the selector matches the labels of the request's namespace.

        If the object is itself a Namespace, its own labels are used. Other cluster-scoped objects always match.

        Raises:
            StatusError: 404 if the namespace does not exist, 500 if the selector is invalid.
        """
        if not attributes.namespace and attributes.resource.resource != "namespaces":
            return True
        parsed = selector.parsed()
        return parsed.empty or parsed.matches(await self._labels(attributes))

    async def _labels(self, attributes: Attributes) -> Mapping[str, str]:
        new = attributes.object
        if attributes.resource.resource == "namespaces" and not attributes.subresource and new is not None:
            return labels_of(new)
        return labels_of(await self.get(attributes.namespace))


def selects_object(selector: ParsedSelector, attributes: Attributes) -> bool:
    """Return whether the selector matches the labels of the new or of the old object. An empty selector always matches.

    Raises:
        StatusError: 500, the selector is invalid.
    """
    parsed = selector.parsed()
    if parsed.empty:
        return True
    return any(
        obj is not None and "metadata" in obj and parsed.matches(labels_of(obj))
        for obj in (attributes.object, attributes.old_object)
    )


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return the labels of an object, empty if it has none. They must not be modified."""
    object_labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return object_labels


__all__ = [
    "Exemption",
    "Namespaces",
    "ParsedSelector",
    "Rule",
    "exemption_from_policies",
    "exemption_from_webhooks",
    "find",
    "labels_of",
    "selects_object",
]
