"""PodSecurity: enforces, audits and warns by the Pod Security Standards that a namespace's labels select.

Pods that violate the policies are rejected, audited or warned about. For workloads, the pod template is only audited
and warned about. A namespace's labels must be valid; an update that makes them stricter warns about existing pods that
violate them. The standards are in `tetrapod.core.podsecurity`. In a namespace without such labels the plugin costs one
cache lookup.

Upstream: plugin/pkg/admission/security/podsecurity and k8s.io/pod-security-admission/admission.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import Final

from tetrapod.core.admission.kinds import NAMESPACES, PODS
from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.core.podsecurity import metrics
from tetrapod.core.podsecurity.evaluator import details, evaluate, reasons
from tetrapod.core.podsecurity.existing import Findings, by_priority
from tetrapod.core.podsecurity.pods import TEMPLATES, is_significant_update, template_of
from tetrapod.core.podsecurity.policy import (
    ALLOW_ALL,
    PREFIX,
    PRIVILEGED,
    PRIVILEGED_POLICY,
    STRICTNESS,
    LevelVersion,
    Policy,
    from_labels,
)
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupKind, GroupResource, Object
from tetrapod.machinery.status import StatusError, invalid, not_found

_OTHER_SUBRESOURCES: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
)
_MAX_PODS: Final = 3000
_MAX_SECONDS: Final = 1.0
_PODS_PER_STEP: Final = 50
"""Number of pods after which the check of existing pods yields to other requests."""


@dataclass(frozen=True, slots=True)
class Exemptions:
    """Users, namespaces and runtime classes to which no policy applies.

    Upstream: PodSecurityExemptions of the plugin's configuration.
    """

    usernames: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()


class PodSecurity(Plugin):
    """The plugin that enforces, audits and warns by the Pod Security Standards that a namespace's labels select.

    Args:
        defaults: the policy of namespaces without labels.
        exempt: users, namespaces and runtime classes to which no policy applies; None for no exemptions.
    """

    name = "PodSecurity"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(
        self, storages: StorageFactory, defaults: Policy = PRIVILEGED_POLICY, exempt: Exemptions | None = None
    ) -> None:
        self._namespaces = Lister(storages, NAMESPACES)
        self._pods = Lister(storages, PODS)
        self._defaults = defaults
        self._exempt = exempt or Exemptions()

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        if resource == "pods":
            return not group and attributes.subresource not in _OTHER_SUBRESOURCES
        return not attributes.subresource and (
            (group, resource) in TEMPLATES or (group, resource) == ("", "namespaces")
        )

    async def validate(self, attributes: Attributes) -> None:
        match attributes.resource.resource:
            case "namespaces":
                await self._namespace(attributes)
            case "pods":
                await self._pod(attributes)
            case _:
                await self._template(attributes)

    async def _pod(self, attributes: Attributes) -> None:
        if self._is_exempt(attributes):
            return
        policy, errors = await self._policy(attributes)
        if policy.fully_privileged and not errors:
            metrics.evaluated("allow", policy.enforce, "enforce", attributes)
            _annotate(attributes, "enforce-policy", str(ALLOW_ALL))
            return
        pod, old = object_of(attributes), attributes.old_object
        if (
            attributes.operation == "CREATE"
            or old is None
            or await offloaded(attributes.large, is_significant_update, pod, old)
        ):
            await self._evaluate(attributes, policy, errors, pod, enforce=True)

    async def _template(self, attributes: Attributes) -> None:
        """Evaluate the pod template of a workload against the audit and warn policies of its namespace.

        The workload is never rejected. If its namespace cannot be read, only an audit annotation is added.
        """
        if self._is_exempt(attributes):
            return
        try:
            policy, errors = await self._policy(attributes)
        except StatusError as error:
            _annotate(
                attributes, "error", f"failed to lookup namespace {go_quote(attributes.namespace)}: {error.message}"
            )
            return
        if policy.audit.level == policy.warn.level == PRIVILEGED and not errors:
            return
        group, _, resource = attributes.resource
        template = template_of(group, resource, object_of(attributes))
        if template is not None:
            await self._evaluate(attributes, policy, errors, template, enforce=False)

    async def _policy(self, attributes: Attributes) -> tuple[Policy, list[FieldError]]:
        name = attributes.namespace
        namespace = await self._namespaces.find("", name)
        if namespace is None:
            metrics.failed(attributes, fatal=True)
            raise not_found(GroupResource("", "namespaces"), name)
        return from_labels(namespace["metadata"].get("labels"), self._defaults)

    async def _evaluate(
        self, attributes: Attributes, policy: Policy, errors: list[FieldError], pod: Object, *, enforce: bool
    ) -> None:
        """Evaluate the pod against the three policies: add audit annotations, warnings and metrics.

        Args:
            errors: errors in the namespace's labels, which are recorded as an audit annotation.
            pod: a pod or a pod template.
            enforce: whether to apply the enforce policy; False for workloads.

        Raises:
            StatusError: 403, the pod violates the enforce policy; only if `enforce`.
        """
        metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        if spec.get("runtimeClassName") in self._exempt.runtime_classes:
            _annotate(attributes, "exempt", "runtimeClass")
            metrics.exempted(attributes)
            return
        if errors:
            metrics.failed(attributes, fatal=False)
            _annotate(attributes, "error", f"Failed to parse policy: {aggregate_errors(errors)}")
        details_by_policy: dict[LevelVersion, str] = {}

        async def violations(standard: LevelVersion) -> str:
            if standard not in details_by_policy:
                details_by_policy[standard] = await offloaded(attributes.large, _details, standard, metadata, spec)
            return (
                f"violate PodSecurity {go_quote(str(standard))}: {details_by_policy[standard]}"
                if details_by_policy[standard]
                else ""
            )

        if enforce:
            _annotate(attributes, "enforce-policy", str(policy.enforce))
            metrics.evaluated(
                "deny" if await violations(policy.enforce) else "allow", policy.enforce, "enforce", attributes
            )
        if text := await violations(policy.audit):
            metrics.evaluated("deny", policy.audit, "audit", attributes)
            _annotate(attributes, "audit-violations", f"would {text}")
        if enforce and (text := await violations(policy.enforce)):
            raise forbidden(attributes, text.replace("violate", "violates", 1))
        if text := await violations(policy.warn):
            metrics.evaluated("deny", policy.warn, "warn", attributes)
            attributes.warnings.append(f"would {text}")

    async def _namespace(self, attributes: Attributes) -> None:
        namespace, old = object_of(attributes), attributes.old_object
        name, labels = namespace["metadata"].get("name", ""), namespace["metadata"].get("labels") or {}
        policy, errors = from_labels(labels, self._defaults)
        old_policy, old_errors = from_labels(((old or {}).get("metadata") or {}).get("labels"), self._defaults)
        is_update = attributes.operation == "UPDATE"
        if errors and (not is_update or errors != old_errors):
            raise invalid(GroupKind(attributes.kind.group, attributes.kind.kind), attributes.name or name, errors)
        if is_update and not _is_stricter(policy.enforce, old_policy.enforce):
            return
        if name in self._exempt.namespaces:
            if not policy.fully_privileged and not policy.same_effect(self._defaults):
                detail = f"the policy ({policy.spelled_out(labels)}) will be ignored"
                attributes.warnings.append(f"namespace {go_quote(name)} is exempt from Pod Security, and {detail}")
        elif is_update:
            attributes.warnings += await self._existing(name, policy.enforce)

    async def _existing(self, namespace: str, enforce: LevelVersion) -> list[str]:
        """Return warnings about pods in the namespace that violate the policy `enforce`.

        At most 3000 pods are checked, for at most one second. If some were not checked, a warning says so. The result
        is [] if all pods were checked and comply.
        """
        deadline = monotonic() + _MAX_SECONDS
        pods = by_priority(await self._pods.list(namespace), self._exempt.runtime_classes)
        findings, checked = Findings(), 0
        for pod in pods[:_MAX_PODS]:
            if violations := evaluate(enforce, pod["metadata"], pod.get("spec") or {}):
                findings.add(pod["metadata"]["name"], reasons(violations))
            checked += 1
            if monotonic() > deadline:
                break
            if not checked % _PODS_PER_STEP:
                await asyncio.sleep(0)
        return findings.warnings(namespace, enforce, checked, len(pods))

    def _is_exempt(self, attributes: Attributes) -> bool:
        if attributes.namespace in self._exempt.namespaces:
            _annotate(attributes, "exempt", "namespace")
        elif attributes.user.name in self._exempt.usernames:
            _annotate(attributes, "exempt", "user")
        else:
            return False
        metrics.exempted(attributes)
        return True


def _details(policy: LevelVersion, metadata: Object, spec: Object) -> str:
    """Return the text of the pod's violations of a policy, or "" if it complies."""
    return details(evaluate(policy, metadata, spec))


def _is_stricter(new: LevelVersion, old: LevelVersion) -> bool:
    """Return whether the new policy could reject pods that the old one allowed.

    With equal versions, the levels decide. With different versions, every policy but "privileged" counts as stricter.
    """
    if new.version == old.version:
        return STRICTNESS[new.level] > STRICTNESS[old.level]
    return new.level != PRIVILEGED


def _annotate(attributes: Attributes, name: str, value: str) -> None:
    attributes.annotations[PREFIX + name] = value
