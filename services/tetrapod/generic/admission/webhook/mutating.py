"""MutatingAdmissionWebhook: calls the matching webhooks one after another, each with the result of those before it.

If a webhook changes the object, the chain calls all mutating plugins a second time. This plugin then calls those
webhooks again that were called before the change and have the reinvocationPolicy IfNeeded.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating
"""

from __future__ import annotations

import operator
from typing import Any, Final

import orjson

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.webhook.dispatch import CallingFailed, WebhookPlugin
from tetrapod.generic.admission.webhook.hooks import MUTATING, Hook
from tetrapod.generic.admission.webhook.review import Denied, Verdict
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.copying import copy_large, copy_object
from tetrapod.machinery.golang.formatting import json_kind
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.patch import json_patch
from tetrapod.machinery.serializer import json
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.serializer.json import go_escaped
from tetrapod.machinery.serializer.type_meta import recognize
from tetrapod.machinery.status import StatusError, internal_error

_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_PATCH: Final = "patch.webhook.admission.k8s.io/"
_LARGE: Final = 64 * 1024
"""Larger patches (in bytes) are applied in a thread, so that the event loop is not blocked."""


class _Reinvocation:
    """The state that the first invocation of the plugin leaves for the second.

    Attributes:
        output: the JSON of the object after the invocation; only set if `pending`.
        again: the uids (`Hook.uid`) of the webhooks to call in the second invocation.
    """

    def __init__(self) -> None:
        self.output = b""
        self._called: set[str] = set()  # reinvocable webhooks called since the last change
        self.again: set[str] = set()

    @property
    def pending(self) -> bool:
        """Whether a change of the object makes it necessary to call webhooks again."""
        return bool(self._called)

    def called(self, hook: Hook) -> None:
        """Record that a webhook was called. Only one with the reinvocationPolicy IfNeeded is remembered."""
        if hook.reinvocable:
            self._called.add(hook.uid)

    def changed(self) -> None:
        """Record a change of the object: webhooks that were called before it are to be called again."""
        self.again |= self._called
        self._called = set()


class MutatingAdmissionWebhook(WebhookPlugin):
    """The plugin MutatingAdmissionWebhook, which calls the matching webhooks one after another."""

    name = "MutatingAdmissionWebhook"
    phase = "admit"
    configurations = MUTATING
    mutating = True

    async def admit(self, attributes: Attributes) -> None:
        hooks = await self._ready(attributes)
        reinvocation: _Reinvocation = attributes.state.setdefault(self.name, _Reinvocation())
        if (
            attributes.is_reinvocation
            and reinvocation.pending
            and reinvocation.output != await offloaded(attributes.large, _snapshot, attributes)
        ):
            reinvocation.changed()
        try:
            for index, hook in enumerate(hooks):
                matched_kind = await self._match(hook, attributes)
                if matched_kind is None or (attributes.is_reinvocation and hook.uid not in reinvocation.again):
                    continue
                await self._call_hook(index, hook, matched_kind, attributes, reinvocation)
        finally:
            if reinvocation.pending:
                reinvocation.output = await offloaded(attributes.large, _snapshot, attributes)

    async def _call_hook(
        self, index: int, hook: Hook, matched_kind: Equivalent, attributes: Attributes, reinvocation: _Reinvocation
    ) -> None:
        observed = self._observe(hook, attributes)
        place = f"round_{int(attributes.is_reinvocation)}_index_{index}"
        changed = False
        try:
            changed = await self._mutate(hook, matched_kind, attributes, place)
        except (CallingFailed, Denied, StatusError) as error:
            reinvocation.called(hook)
            rejection = self._rejection(hook, observed, error)
            if rejection is not None:
                try:
                    raise rejection from None
                finally:
                    del rejection
            attributes.annotate(f"failed-open.{_MUTATION}{place}", hook.name)
            return
        finally:
            annotation = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            attributes.annotate(_MUTATION + place, go_escaped(orjson.dumps(annotation)).decode())
        observed.called(200, rejected=False)
        if changed:
            reinvocation.changed()
            attributes.reinvoke = True
        reinvocation.called(hook)

    async def _mutate(self, hook: Hook, matched_kind: Equivalent, attributes: Attributes, place: str) -> bool:
        """Call the webhook, and apply the patch of its response to `attributes.object`.

        Return whether the object changed.

        Args:
            place: identifies the call in audit annotations ("round_0_index_2").

        Raises:
            CallingFailed: the call failed, or the response has no valid JSON patch.
            StatusError: the webhook rejected the request, or its patch cannot be applied (500).
        """
        new, old = await self._convert_objects(attributes, matched_kind)
        verdict = await self._ask(hook, attributes, matched_kind, new, old)
        operations = _operations(hook, verdict)
        if not operations:
            return False
        if new is None or attributes.object is None:
            raise internal_error(
                f"admission webhook {go_quote(hook.name)} attempted to modify the object, "
                "which is not supported for this operation"
            )
        if verdict.patch_type != "JSONPatch":
            raise CallingFailed(
                hook.name,
                f"unsupported patch type {go_quote(verdict.patch_type)}",
                Denied(hook.name, verdict.status).code,
            )
        patched = await offloaded(
            attributes.large or len(verdict.patch) > _LARGE, _apply, new, operations, attributes.large
        )
        try:
            accepted = patched
            if attributes.versions is not None:
                accepted = await attributes.versions.accept(
                    patched, matched_kind.kind, attributes.object, large=attributes.large
                )
        except ValueError as error:
            raise internal_error(str(error)) from None
        # serializing a large patch is expensive
        if attributes.request is not None and attributes.request.audit is not None:
            annotation = {
                "configuration": hook.configuration,
                "webhook": hook.name,
                "patch": operations,
                "patchType": "JSONPatch",
            }
            attributes.annotate(_PATCH + place, go_escaped(orjson.dumps(annotation)).decode(), level="Request")
        changed: bool = await offloaded(attributes.large, operator.ne, accepted, attributes.object)
        attributes.object = accepted
        return changed


def _snapshot(attributes: Attributes) -> bytes:
    return orjson.dumps(attributes.object, option=orjson.OPT_SORT_KEYS)


def _operations(hook: Hook, verdict: Verdict) -> list[dict[str, Any]]:
    """Return the JSON patch operations in a webhook's response; empty if it has no patch.

    Args:
        hook: the webhook, for the error.
        verdict: its evaluated response.

    Raises:
        CallingFailed: the patch is not a JSON patch.
    """
    if not verdict.patch:
        return []
    text = ""
    try:
        decoded = json.decode(verdict.patch).obj
    except DecodeError as error:
        text = str(error)
    else:
        if decoded is None:
            return []
        if not isinstance(decoded, list):
            text = f"json: cannot unmarshal {json_kind(decoded)} into Go value of type jsonpatch.Patch"
        else:
            invalid_item = next((item for item in decoded if item is not None and not isinstance(item, dict)), None)
            if invalid_item is None:
                return [item or {} for item in decoded]
            text = f"json: cannot unmarshal {json_kind(invalid_item)} into Go value of type jsonpatch.Operation"
    raise CallingFailed(hook.name, f"received undecodable patch in webhook response: {text}", 503)


def _apply(obj: Object, operations: list[dict[str, Any]], large: bool) -> Object:
    """Return a patched copy of the object, which is not modified.

    Args:
        obj: the object as it was sent to the webhook.
        operations: the decoded patch.
        large: whether to copy the object in steps between which other threads can run (`copy_large`). This is slower
            for small objects, and meant for calls in a worker thread.

    Raises:
        StatusError: 500 if an operation cannot be applied, or if the result is not an object or has a malformed
            apiVersion or kind.
    """
    copy = copy_large if large else copy_object
    try:
        patched = json_patch.apply_operations(copy(obj), operations)
    except json_patch.JSONPatchError as error:
        raise internal_error(str(error)) from None
    try:
        recognize(patched)
    except DecodeError as error:
        raise internal_error(str(error)) from None
    return copy(patched)  # values that the patch copied or moved are shared within it
