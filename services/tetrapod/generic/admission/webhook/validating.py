"""ValidatingAdmissionWebhook: calls all matching webhooks concurrently; the first rejection counts.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.webhook.dispatch import CallingFailed, WebhookPlugin
from tetrapod.generic.admission.webhook.hooks import VALIDATING, Hook
from tetrapod.generic.admission.webhook.review import Denied
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"


class ValidatingAdmissionWebhook(WebhookPlugin):
    """The plugin ValidatingAdmissionWebhook, which calls all matching webhooks concurrently."""

    name = "ValidatingAdmissionWebhook"
    phase = "validating"
    configurations = VALIDATING

    async def validate(self, attributes: Attributes) -> None:
        calls = []
        for hook in await self._ready(attributes):
            matched_kind = await self._match(hook, attributes)
            if matched_kind is not None:
                new, old = await self._convert_objects(attributes, matched_kind)
                calls.append((hook, matched_kind, new, old))
        if not calls:
            return
        rejections: list[Failure[StatusError]] = []  # in the order of the answers
        calls_in_flight = (self._call(i, *call, attributes, rejections) for i, call in enumerate(calls))
        await asyncio.gather(*calls_in_flight)
        if rejections:
            raise rejections[0].error()

    async def _call(
        self,
        index: int,
        hook: Hook,
        matched_kind: Equivalent,
        new: Object | None,
        old: Object | None,
        attributes: Attributes,
        rejections: list[Failure[StatusError]],
    ) -> None:
        observed = self._observe(hook, attributes)
        try:
            await self._ask(hook, attributes, matched_kind, new, old)
        except (CallingFailed, Denied, StatusError) as error:
            rejection = self._rejection(hook, observed, error)
            if rejection is not None:
                rejections.append(Failure(rejection))
            else:
                attributes.annotate(f"{_FAILED_OPEN}round_0_index_{index}", hook.name)
        else:
            observed.called(200, rejected=False)
