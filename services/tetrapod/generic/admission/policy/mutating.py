"""The plugin MutatingAdmissionPolicy: changes objects by the results of CEL expressions.

Policies are applied one after another, each to the result of those before it. If the object changes after a policy was
applied and the policy has `reinvocationPolicy: IfNeeded`, it is applied once more, when the chain calls all mutating
plugins again.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go, reinvocationcontext.go
"""

from __future__ import annotations

import operator
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tetrapod.generic.admission.interface import Attributes, Versions, forbidden
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.admission.policy.definitions import Policy, policy_storage
from tetrapod.generic.admission.policy.metrics import error_type, mutated
from tetrapod.generic.admission.policy.plugin import Invocation, Misconfigured, PolicyPlugin, with_causes
from tetrapod.generic.admission.policy.source import PolicySource
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.scheduling.offload import copy_of, offloaded
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.status import StatusError, internal_error

if TYPE_CHECKING:
    from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables
    from tetrapod.generic.admission.policy.mutator import Mutation, Mutator

_POLICIES: Final = policy_storage("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
_BINDINGS: Final = policy_storage("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")

Key = tuple[str, str, str, str]
"""Policy, binding, and namespace and name of the parameter."""


def _compile(policy: Policy) -> Mutator:
    from tetrapod.generic.admission.policy.mutator import Mutator

    return Mutator(policy)


@dataclass(slots=True)
class _Reinvocation:
    """The state that the first invocation of the plugin keeps for the second (upstream: policyReinvokeContext).

    Attributes:
        output: a copy of the object after the first invocation.
        invoked: the policies with reinvocationPolicy IfNeeded that were applied since the last change of the object.
        again: the policies to apply in the second invocation.
    """

    output: Object | None = None
    invoked: set[Key] = field(default_factory=set)
    again: set[Key] = field(default_factory=set)

    def require(self) -> None:
        """Record that the object has changed: the policies in `invoked` move to `again`."""
        self.again |= self.invoked
        self.invoked = set()


@dataclass(slots=True)
class _Request:
    """The state of one request during an invocation of the plugin.

    Attributes:
        attributes: the request; the policies replace its object.
        versions: converts the object to the kind under which a policy matched the request.
        authorizer_variables: the values of the CEL variables for authorization checks.
        namespace: the Namespace object; None for cluster-scoped objects.
        reinvocation: which policies have been applied, and are to be applied again.
        rejections: the messages of policies that reject the request, with their reasons.
    """

    attributes: Attributes
    versions: Versions
    authorizer_variables: AuthorizerVariables
    namespace: Object | None
    reinvocation: _Reinvocation
    rejections: list[tuple[str, str]] = field(default_factory=list)

    async def object(self, kind: GroupVersionKind) -> Object:
        obj = self.attributes.object
        assert obj is not None
        return await self.versions.convert(obj, kind, large=self.attributes.large)


class MutatingAdmissionPolicy(PolicyPlugin["Mutator"]):
    """The plugin MutatingAdmissionPolicy, which changes objects by the results of CEL expressions."""

    name = "MutatingAdmissionPolicy"
    operations = frozenset({"CREATE", "UPDATE", "CONNECT"})

    def __init__(self, dependencies: PluginDependencies) -> None:
        source = PolicySource(dependencies.storages, dependencies.background, _POLICIES, _BINDINGS, _compile)
        super().__init__(dependencies, source)

    def handles(self, attributes: Attributes) -> bool:
        return super().handles(attributes) and feature_gates.enabled(self.name)

    async def admit(self, attributes: Attributes) -> None:
        hooks = await self.hooks(attributes)
        if not hooks or attributes.versions is None:
            return
        # All policies are matched before any of them changes the object.
        matches = [match for hook in hooks async for match in self.invocations(hook, attributes)]
        rejections = [
            _configuration_rejection(match)
            for match in matches
            if isinstance(match, Misconfigured) and match.policy.fails
        ]
        invocations = [match for match in matches if isinstance(match, Invocation)]
        if invocations:
            from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables

            authorizer_variables = AuthorizerVariables(self.dependencies.authorizer, attributes)
            reinvocation: _Reinvocation = attributes.state.setdefault(self.name, _Reinvocation())
            request = _Request(
                attributes, attributes.versions, authorizer_variables, await self.namespace_of(attributes), reinvocation
            )
            await self._invoke(invocations, request)
            rejections += request.rejections
        if rejections:
            raise _denial_error(attributes, rejections)

    async def _invoke(self, invocations: list[Invocation[Mutator]], request: _Request) -> None:
        attributes, reinvocation = request.attributes, request.reinvocation
        if attributes.is_reinvocation and await _differ(attributes, reinvocation.output):
            reinvocation.require()
        timer = YieldTimer()
        for invocation in invocations:
            await timer.yield_if_due()
            await self._invoke_one(invocation, request)
        if attributes.reinvoke:  # as upstream, policies that made the change themselves are applied again too
            reinvocation.require()
        obj = attributes.object
        reinvocation.output = None if obj is None else await copy_of(obj, large=attributes.large)

    @traced(lambda _, invocation, __: f"policy {invocation.policy.name}", detailed=True)
    async def _invoke_one(self, invocation: Invocation[Mutator], request: _Request) -> None:
        from tetrapod.generic.admission.policy.match_conditions import MatchConditionError

        attributes, reinvocation, policy = request.attributes, request.reinvocation, invocation.policy
        try:
            if not await invocation.evaluator.matches(
                await _bindings(invocation, request), request.authorizer_variables, large=attributes.large
            ):
                return
        except MatchConditionError as error:
            _reject(invocation, request, str(error))
            return
        key = _key(invocation)
        if attributes.is_reinvocation and key not in reinvocation.again:
            return
        previous = attributes.object
        if previous is not None:
            for mutation in invocation.evaluator.mutations:
                await _mutate(mutation, invocation, request)
            if await _differ(attributes, previous):
                reinvocation.require()
        if policy.spec.get("reinvocationPolicy") == "IfNeeded":
            reinvocation.invoked.add(key)


async def _differ(attributes: Attributes, obj: Object | None) -> bool:
    """Return whether the object of the request is not equal to `obj`."""
    different: bool = await offloaded(attributes.large, operator.ne, attributes.object, obj)
    return different


async def _mutate(mutation: Mutation, invocation: Invocation[Mutator], request: _Request) -> None:
    from tetrapod.generic.admission.policy.patches import MutationError

    attributes, kind = request.attributes, invocation.matched_kind.kind
    names = invocation.policy.name, invocation.binding.name
    started = time.perf_counter()
    bindings = await _bindings(invocation, request)
    current, schema = bindings["object"], request.versions.schema(kind)
    try:
        changed = await invocation.evaluator.mutate(
            mutation, current, schema, bindings, request.authorizer_variables, large=attributes.large
        )
    except MutationError as error:
        mutated(*names, error_type(str(error)), time.perf_counter() - started)
        _reject(invocation, request, str(error))
        return
    mutated(*names, "no_error", time.perf_counter() - started)
    attributes.reinvoke = True
    if changed is current:
        return
    try:
        attributes.object = await request.versions.accept(
            await copy_of(changed, large=attributes.large),
            kind,
            attributes.object or {},
            strict=mutation.patches,
            large=attributes.large,
        )
    except ValueError as error:
        raise internal_error(str(error)) from None


async def _bindings(invocation: Invocation[Mutator], request: _Request) -> dict[str, Any]:
    from tetrapod.generic.admission.request import admission_request, namespace_object

    attributes, matched_kind = request.attributes, invocation.matched_kind
    old = attributes.old_object
    if old is not None:
        old = await request.versions.convert(old, matched_kind.kind, large=attributes.large)
    return {
        "object": await request.object(matched_kind.kind) if attributes.object is not None else None,
        "oldObject": old,
        "params": invocation.param,
        "request": admission_request(attributes, matched_kind),
        "namespaceObject": namespace_object(request.namespace),
    }


def _key(invocation: Invocation[Mutator]) -> Key:
    meta = (invocation.param or {}).get("metadata") or {}
    return invocation.policy.name, invocation.binding.name, meta.get("namespace") or "", meta.get("name") or ""


def _reject(invocation: Invocation[Mutator], request: _Request, text: str) -> None:
    if invocation.policy.fails:
        by = f"policy '{invocation.policy.name}' with binding '{invocation.binding.name}'"
        request.rejections.append((f"{by} denied request: {text}", "Invalid"))


def _configuration_rejection(match: Misconfigured) -> tuple[str, str]:
    if match.binding is None:
        return f'policy "{match.policy.name}" denied request: failed to configure policy: {match.error}', ""
    by = f"policy '{match.policy.name}' with binding '{match.binding.name}'"
    return f"{by} denied request: failed to configure binding: {match.error}", ""


def _denial_error(attributes: Attributes, rejections: list[tuple[str, str]]) -> StatusError:
    """Return, not raise, the rejection by `rejections`, pairs of message and reason.

    The first pair gives its message and reason, and all messages are its causes.
    """
    status = forbidden(attributes, "admission request denied by policy")
    status.message, reason = rejections[0]
    status.reason = reason or status.reason
    return with_causes(status, [message for message, _ in rejections])
