"""The common part of both webhook plugins.

It matches a request, calls the webhook, and converts failures to rejections.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go, ShouldCallHook; the common
part of callHook and callAttrMutatingHook
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tetrapod.generic.admission import break_glass
from tetrapod.generic.admission.interface import ALL_OPERATIONS, Attributes, Equivalent, Plugin, forbidden
from tetrapod.generic.admission.manifests.following import follow_manifests
from tetrapod.generic.admission.manifests.source import Manifests, ManifestSource
from tetrapod.generic.admission.matching import Exemption, Namespaces, exemption_from_webhooks, find, selects_object
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.admission.webhook.hooks import Hook, Hooks, hooks_of
from tetrapod.generic.admission.webhook.metrics import Observation
from tetrapod.generic.admission.webhook.review import Denied, InvalidResponse, Verdict, new_review, verdict
from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.webhook.client_config import Unusable
from tetrapod.generic.webhook.responses import CallFailed
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request, internal_error

if TYPE_CHECKING:
    from tetrapod.generic.webhook.credentials_by_host import CredentialsByHost

log = logging.getLogger(__name__)
_HARMLESS: Final = frozenset({"None", "NoneOnDryRun"})
_REQUEST_BOUND: Final = 34.0
"""A write has this many seconds from its start (upstream: requestTimeoutUpperBound)."""
_DEFAULT_TIMEOUT: Final = 30.0
_LONGEST: Final = "the validating webhook that took longest"


class CallingFailed(Exception):
    """The webhook could not be called or returned no valid response, so that `failurePolicy` applies.

    Args:
        name: the name of the webhook.
        reason: the error text.
        code: the HTTP status code for the metrics.
    """

    def __init__(self, name: str, reason: str, code: int) -> None:
        super().__init__(f"failed calling webhook {go_quote(name)}: {reason}")
        self.code = code


def _hooks_in(manifests: Manifests) -> list[Hook]:
    return [hook for obj in manifests.objects for hook in hooks_of(obj, "manifest/")]


class WebhookPlugin(Plugin):
    """The base class of the two webhook plugins: finds the webhooks for a request and calls them.

    A subclass defines `admit` or `validate`, which uses the responses.

    Attributes:
        phase: the label in upstream's metrics: "admit" or "validating".
        mutating: whether it is the plugin of mutating webhooks.
        configurations: how the plugin's webhook configurations are stored.

    Args:
        dependencies: the storages, the webhook client, the authorizer and the configuration that the plugin uses.

    Raises:
        ValueError: the configuration of the plugin is invalid.
    """

    operations = ALL_OPERATIONS
    phase = ""
    mutating = False
    configurations: StorageConfig

    def __init__(self, dependencies: PluginDependencies) -> None:
        self._hooks = Hooks(dependencies.storages, self.configurations, dependencies.background)
        self._namespaces = Namespaces(dependencies.storages)
        self._client = dependencies.webhooks
        self._authorizer = dependencies.authorizer
        self._dependencies = dependencies
        self._credentials_by_host: CredentialsByHost | None = None
        self._manifests: ManifestSource[Hook] | None = None
        if (configured := dependencies.configuration.for_plugin(self.name)) is not None:
            self._configure(configured)

    def _configure(self, configured: bytes) -> None:
        from tetrapod.generic.admission.webhook.configuration import read_webhook_configuration

        configuration = read_webhook_configuration(configured)
        self._credentials_by_host = configuration.credentials
        if configuration.manifests:
            self._manifests = follow_manifests(
                self.name,
                configuration.manifests,
                self.configurations.kind,
                _hooks_in,
                self._dependencies.load_manifests,
                self._dependencies.background,
            )

    def handles(self, attributes: Attributes) -> bool:
        if self._manifests is None or not self._manifests.items:
            return not self._hooks.is_empty and exemption_from_webhooks(attributes) is Exemption.NONE
        return exemption_from_webhooks(attributes) is not Exemption.ALL

    async def _ready(self, attributes: Attributes) -> list[Hook]:
        manifests = self._manifests.items if self._manifests is not None else []
        if exemption_from_webhooks(attributes) is not Exemption.NONE:
            return manifests
        configured = await self._api_hooks(attributes)
        return [*manifests, *configured] if manifests else configured

    async def _api_hooks(self, attributes: Attributes) -> list[Hook]:
        known = await self._hooks.ready()
        if break_glass.bypasses(self._dependencies, attributes):
            if any(find(hook.rules, attributes, equivalent=hook.equivalent) for hook in self._hooks.all):
                break_glass.record_bypass(self.name, attributes)
            return []
        if not known:
            raise forbidden(attributes, "not yet ready to handle request")
        return self._hooks.all

    async def _match(self, hook: Hook, attributes: Attributes) -> Equivalent | None:
        """Return the resource and kind under which the webhook matches the request, or None if it does not match.

        Raises:
            StatusError: 500 if a selector is invalid, 404 if the namespace does not exist, 403 if match conditions
                cannot be evaluated and the failurePolicy is Fail, 503 if an authorization check in them fails.
        """
        matched_kind = find(hook.rules, attributes, equivalent=hook.equivalent)
        if matched_kind is None or not selects_object(hook.object_selector, attributes):
            return None
        if not await self._namespaces.selects(hook.namespace_selector, attributes):
            return None
        if hook.match_conditions and not await self._conditions_match(hook, attributes, matched_kind):
            return None
        return matched_kind

    async def _conditions_match(self, hook: Hook, attributes: Attributes, matched_kind: Equivalent) -> bool:
        from tetrapod.generic.admission.webhook.conditions import conditions_match  # imports CEL

        new, old = await self._convert_objects(attributes, matched_kind)
        return await conditions_match(hook, self.phase, attributes, matched_kind, new, old, self._authorizer)

    async def _convert_objects(
        self, attributes: Attributes, matched_kind: Equivalent
    ) -> tuple[Object | None, Object | None]:
        """Return the new and the old object as the webhook's kind; they must not be modified.

        An object that does not exist (the old one on create, the new one on delete) is None.

        Raises:
            ValueError: an object cannot be converted to that kind.
        """
        new, old = attributes.object, attributes.old_object
        if attributes.versions is None:
            return new, old
        return (
            None if new is None else await attributes.versions.convert(new, matched_kind.kind, large=attributes.large),
            None if old is None else await attributes.versions.convert(old, matched_kind.kind, large=attributes.large),
        )

    @traced(
        lambda self, *_: f"Call {'mutating' if self.mutating else 'validating'} webhook",
        lambda _, hook, attributes, *__: {
            "configuration": hook.configuration,
            "webhook": hook.name,
            "resource": str(attributes.resource),
            "subresource": attributes.subresource,
            "operation": attributes.operation,
        },
    )
    async def _ask(
        self, hook: Hook, attributes: Attributes, matched_kind: Equivalent, new: Object | None, old: Object | None
    ) -> Verdict:
        """Call the webhook and return its verdict. Its warnings and audit annotations are added to `attributes`.

        Args:
            hook: the webhook.
            attributes: the request.
            matched_kind: the resource and kind under which the webhook matched the request.
            new: the new object as this kind; None for a deletion.
            old: the stored object as this kind; None for a creation.

        Raises:
            CallingFailed: the call failed, or the response is invalid.
            Denied: the webhook rejected the request.
            StatusError: 400, the webhook has side effects and this is a dry run.
        """
        self._check_dry_run(hook, attributes)
        try:
            review_request = await offloaded(
                attributes.large, new_review, attributes, matched_kind, hook.review_versions, new, old
            )
        except InvalidResponse as error:
            raise CallingFailed(hook.name, f"could not create admission objects: {error}", 400) from None
        try:
            client = hook.client
            if self._credentials_by_host is not None:
                client = replace(client, credentials=self._credentials_by_host.credentials_for(client))
        except Unusable as error:
            raise CallingFailed(hook.name, f"could not get REST client: {error}", 500) from None
        started = time.monotonic()
        try:
            review = await self._client.call(
                client, review_request.body, _time_left(hook, attributes), review_request.expected
            )
        except CallFailed as error:
            raise CallingFailed(hook.name, f"failed to call webhook: {error}", error.code) from None
        finally:
            _record_latency(attributes, self.mutating, started)
        try:
            result = verdict(review_request, review, mutating=self.mutating)
        except InvalidResponse as error:
            raise CallingFailed(hook.name, f"received invalid webhook response: {error}", 503) from None
        for key, value in result.audit_annotations.items():
            attributes.annotate(f"{hook.name}/{key}", value)
        attributes.warnings.extend(result.warnings)
        if not result.allowed:
            raise Denied(hook.name, result.status)
        return result

    def _check_dry_run(self, hook: Hook, attributes: Attributes) -> None:
        if not attributes.dry_run:
            return
        if hook.side_effects is None:
            raise CallingFailed(hook.name, "Webhook SideEffects is nil", 400)
        if hook.side_effects not in _HARMLESS:
            raise bad_request(f"admission webhook {go_quote(hook.name)} does not support dry run")

    def _observe(self, hook: Hook, attributes: Attributes) -> Observation:
        return Observation(hook.name, self.phase, attributes.operation)

    def _rejection(self, hook: Hook, observed: Observation, error: Exception) -> StatusError | None:
        """Return, not raise, the error that rejects the request after a call failed, or None if the failure is ignored.

        Only `CallingFailed` can be ignored, by the failurePolicy Ignore. A denial or an internal error always rejects
        the request. Metrics are recorded for each of them; only `CallingFailed` is logged.

        Args:
            hook: the webhook.
            observed: the metrics of the call, which this function completes.
            error: the exception that the call raised.
        """
        if isinstance(error, CallingFailed):
            rejected = not hook.ignores_failure
            if rejected:
                observed.rejected("calling_webhook_error", error.code)
            else:
                observed.failed_open()
            observed.called(error.code, rejected=rejected)
            log.warning("failed calling webhook, failing %s %s: %s", "closed" if rejected else "open", hook.name, error)
            return internal_error(str(error)) if rejected else None
        if isinstance(error, Denied):
            observed.rejected("no_error", error.code)
            observed.called(error.code, rejected=True)
            return error
        observed.rejected("apiserver_internal_error", 0)
        observed.called(0, rejected=True)
        return error if isinstance(error, StatusError) else internal_error(str(error))


def _time_left(hook: Hook, attributes: Attributes) -> float:
    """Return the timeout of the call in seconds.

    It is the webhook's timeout, or the remaining time of the request if that is shorter.
    """
    seconds = float(hook.timeout) if hook.timeout is not None else _DEFAULT_TIMEOUT
    request = attributes.request
    if request is None:
        return seconds
    deadline: float = request.received + _REQUEST_BOUND
    if request.deadline is not None:
        deadline = min(deadline, request.deadline)
    return max(min(seconds, deadline - time.monotonic()), 0.001)


def _record_latency(attributes: Attributes, mutating: bool, began: float) -> None:
    """Record the latency of a call in the audit event, and exclude it from the request's own latency in metrics.

    Mutating webhooks are called one after another, so their latencies add up. Validating ones are called concurrently,
    so only the longest counts.

    Args:
        attributes: the request. Without an HTTP request, nothing is recorded.
        mutating: whether it was the call of a mutating webhook.
        began: the time (`time.monotonic`) at which the call began.
    """
    request = attributes.request
    if request is None:
        return
    seconds = time.monotonic() - began
    if mutating:
        request.excluded_seconds += seconds
    else:
        longest = request.state.get(_LONGEST, 0.0)
        request.state[_LONGEST] = max(longest, seconds)
        request.excluded_seconds += max(seconds - longest, 0.0)
    if request.audit is not None:
        request.audit.add_latency("mutating-webhook" if mutating else "validating-webhook", began, at_once=not mutating)
