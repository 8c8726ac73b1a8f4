"""ValidatingAdmissionWebhook: all webhooks that want the request are asked at once; the first refusal counts.

Follows k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.webhook.calling import CallingFailed, WebhookPlugin
from tetrapod.generic.admission.webhook.hooks import VALIDATING, Hook
from tetrapod.generic.admission.webhook.review import Denied
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"


class ValidatingAdmissionWebhook(WebhookPlugin):
    name = "ValidatingAdmissionWebhook"
    phase = "validating"
    configurations = VALIDATING

    async def validate(self, attributes: Attributes) -> None:
        calls = []
        for hook in await self._ready(attributes):
            seen_as = await self._wanted(hook, attributes)
            if seen_as is not None:
                new, old = await self._versioned(attributes, seen_as)
                calls.append((hook, seen_as, new, old))
        if not calls:
            return
        refusals: list[StatusError] = []  # in the order in which they came
        asked = (self._call(i, *call, attributes, refusals) for i, call in enumerate(calls))
        await asyncio.gather(*asked)
        if refusals:
            raise refusals[0]

    async def _call(
        self,
        index: int,
        hook: Hook,
        seen_as: Equivalent,
        new: Object | None,
        old: Object | None,
        attributes: Attributes,
        refusals: list[StatusError],
    ) -> None:
        observed = self._observe(hook, attributes)
        try:
            await self._ask(hook, attributes, seen_as, new, old)
        except (CallingFailed, Denied, StatusError) as error:
            refusal = self._refusal(hook, observed, error)
            if refusal is not None:
                refusals.append(refusal)
            else:
                attributes.annotate(f"{_FAILED_OPEN}round_0_index_{index}", hook.name)
        else:
            observed.called(200, rejected=False)
