"""The common part of both policy plugins: finding the policies, bindings and parameters that apply to a request.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go, policy_dispatcher.go
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, NamedTuple, TypeVar

from tetrapod.generic.admission import break_glass
from tetrapod.generic.admission.interface import Attributes, Equivalent, Plugin, forbidden
from tetrapod.generic.admission.manifests.following import follow_manifests
from tetrapod.generic.admission.manifests.source import ManifestSource
from tetrapod.generic.admission.matching import Exemption, Namespaces, exemption_from_policies
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.admission.policy.definitions import Binding, Policy
from tetrapod.generic.admission.policy.params import ConfigurationError, Params
from tetrapod.generic.admission.policy.source import Hook, PolicySource
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

E = TypeVar("E")


class Misconfigured(NamedTuple):
    """A policy or binding that matches the request but cannot be applied.

    Attributes:
        policy: the policy.
        binding: the binding; None if the policy itself is at fault.
        error: the error text.
    """

    policy: Policy
    binding: Binding | None
    error: str


class Invocation(NamedTuple, Generic[E]):
    """The application of a policy by one binding with one parameter object.

    Attributes:
        policy: the policy.
        binding: the binding.
        evaluator: the compiled policy.
        matched_kind: the resource and kind under which the policy matched the request. Its expressions see the objects
            as this kind.
        param: the parameter object; None if the policy has no parameters.
    """

    policy: Policy
    binding: Binding
    evaluator: E
    matched_kind: Equivalent
    param: Object | None


class PolicyPlugin(Plugin, Generic[E]):
    """The base class of both policy plugins: finds the policies, bindings and parameters for a request.

    `E` is the type of a compiled policy. A subclass defines `admit` or `validate`, which evaluates `invocations`.

    Args:
        dependencies: the storages, the client, the authorizer and the configuration that the plugin uses.
        source: the policies of the API.
    """

    def __init__(self, dependencies: PluginDependencies, source: PolicySource[E]) -> None:
        self.dependencies = dependencies
        self.source = source
        self.namespaces = Namespaces(dependencies.storages)
        self.params = Params(dependencies.client, dependencies.background)
        self._hooks: list[Hook[E]] | None = None
        self._manifests: ManifestSource[Hook[E]] | None = None
        if (configured := dependencies.configuration.for_plugin(self.name)) is not None:
            self._configure(configured)

    def _configure(self, configured: bytes) -> None:
        from tetrapod.generic.admission.manifests.configuration import policy_manifests_directory

        if directory := policy_manifests_directory(configured, self.name):
            self._manifests = follow_manifests(
                self.name,
                directory,
                self.source.kind,
                self.source.hooks_in,
                self.dependencies.load_manifests,
                self.dependencies.background,
            )

    def handles(self, attributes: Attributes) -> bool:
        if self._manifests is None or not self._manifests.items:
            handled = not self.source.synced or bool(self.source.hooks)
            return handled and exemption_from_policies(attributes) is Exemption.NONE
        return exemption_from_policies(attributes) is not Exemption.ALL

    async def hooks(self, attributes: Attributes) -> list[Hook[E]]:
        """Return the policies that have bindings and may apply to a request, those in manifest files first.

        Whether a policy matches the request is not checked; `invocations` does that. Policies of the API are left
        out if the request is exempt from them (`exemption_from_policies`).

        Raises:
            StatusError: 403, the policies of the API have not been loaded within ten seconds.
        """
        manifests = self._manifests.items if self._manifests is not None else []
        if exemption_from_policies(attributes) is not Exemption.NONE:
            return manifests
        stored = await self._api_hooks(attributes)
        return [*manifests, *stored] if manifests else stored

    async def _api_hooks(self, attributes: Attributes) -> list[Hook[E]]:
        """Return the policies of the API that have bindings, without checking whether they match the request.

        If the request bypasses policies (--break-glass), return [], and record the bypass if a policy would have
        matched.

        Raises:
            StatusError: 403, the policies have not been loaded within ten seconds.
        """
        known = await self.source.ready()
        if break_glass.bypasses(self.dependencies, attributes):
            if any([await self._may_match(hook, attributes) for hook in self.source.hooks]):
                break_glass.record_bypass(self.name, attributes)
            return []
        if not known:
            raise forbidden(attributes, "not yet ready to handle request")
        hooks = self.source.hooks
        if hooks is not self._hooks:
            self._hooks = hooks
            self.params.keep(self.source.param_kinds())
        return hooks

    async def _may_match(self, hook: Hook[E], attributes: Attributes) -> bool:
        """Return whether the policy matches the request; True also if that cannot be evaluated."""
        try:
            return await hook.policy.match.find(attributes, self.namespaces) is not None
        except StatusError:
            return True

    async def invocations(self, hook: Hook[E], attributes: Attributes) -> AsyncIterator[Invocation[E] | Misconfigured]:
        """Yield the invocations of one policy for a request, in the order of its bindings.

        A policy or binding that cannot be applied is yielded as `Misconfigured`. Nothing is yielded if the policy does
        not match.
        """
        policy = hook.policy
        try:
            matched_kind = await policy.match.find(attributes, self.namespaces)
        except StatusError as error:
            yield Misconfigured(policy, None, error.message)
            return
        if matched_kind is None:
            return
        try:
            if policy.param_kind is not None:
                await self.params.add_kind(policy.param_kind)
        except ConfigurationError as error:
            yield Misconfigured(policy, None, str(error))
            return
        for binding in hook.bindings:
            try:
                if not await binding.matches(attributes, self.namespaces):
                    continue
                params = await self.params.collect(policy.param_kind, binding.param_ref, attributes.namespace)
            except (ConfigurationError, StatusError) as error:
                yield Misconfigured(policy, binding, error.message if isinstance(error, StatusError) else str(error))
                continue
            for param in params:
                yield Invocation(policy, binding, hook.evaluator(), matched_kind, param)

    async def namespace_of(self, attributes: Attributes) -> Object | None:
        """Return the namespace of the request's object, or None for cluster-scoped objects. It must not be modified.

        Raises:
            StatusError: 404, it does not exist.
        """
        if attributes.kind == ("", "v1", "Namespace") or not attributes.namespace:
            return None
        return await self.namespaces.get(attributes.namespace)


def with_causes(status: StatusError, messages: list[str]) -> StatusError:
    """Replace the causes in the details of a StatusError, in place, by one for each message. Return the error."""
    status.details = {**(status.details or {}), "causes": [{"message": message} for message in messages]}
    return status
