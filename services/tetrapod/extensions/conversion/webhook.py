"""`WebhookConverter`: objects of one custom resource in another version, as its conversion webhook makes them.

Many are converted in one call, in portions, where upstream asks for one after the other. Follows webhookConverter.Convert of
apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from tetrapod.extensions.conversion import metrics
from tetrapod.extensions.conversion.review import BadConversion, checked, converted_objects, question
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.config import client_config
from tetrapod.generic.webhook.errors import CallFailed, Unusable
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.status import StatusError

TIMEOUT: Final = 30.0
PORTION: Final = 200
"""Objects in one call: encoding and checking more would hold up other requests."""


class WebhookConverter:
    """`name` is the definition's. Objects that are of the wanted version already are not sent."""

    def __init__(self, name: str, group: str, kind: str, conversion: Object, client: WebhookClient) -> None:
        webhook = conversion.get("webhook") or {}
        self._name, self._group, self._kind, self._client = name, group, kind, client
        self._declared: Object = webhook.get("clientConfig") or {}
        self._versions: Sequence[str] = webhook.get("conversionReviewVersions") or ()

    async def convert(self, objects: Sequence[Object], version: str) -> list[Object]:
        """The objects (the caller's own) in `version`.

        Raises:
            StatusError: 500, with upstream's text and no reason.
        """
        wanted = GroupVersion(self._group, version)
        found = list(objects)
        places = [i for i, obj in enumerate(found) if obj.get("apiVersion") != str(wanted)]
        for start in range(0, len(places), PORTION):
            portion = places[start : start + PORTION]
            for place, obj in zip(portion, await self._call([found[i] for i in portion], wanted), strict=True):
                found[place] = obj
            await asyncio.sleep(0)
        return found

    async def _call(self, objects: list[Object], wanted: GroupVersion) -> list[Object]:
        given = GroupVersion.parse(objects[0]["apiVersion"]).with_kind(self._kind)
        start = time.perf_counter()

        def observe(failure: str = "") -> None:
            metrics.observe(self._name, given.version, wanted.version, time.perf_counter() - start, failure)

        def refusal(text: str) -> StatusError:
            return StatusError(500, "", f"conversion webhook for {given} {text}")

        try:
            asked = question(objects, str(wanted), self._versions)
            review = await self._client.call(client_config(self._config()), asked.body, TIMEOUT, asked.expected)
        except BadConversion as error:
            raise StatusError(500, "", str(error)) from None
        except Unusable as error:
            raise StatusError(500, "", str(error)) from None
        except CallFailed as error:
            observe(metrics.CALL)
            raise refusal(f"failed: {error}") from None
        try:
            found = converted_objects(asked, review)
        except BadConversion as error:
            observe(metrics.MALFORMED)
            raise refusal(f"failed: {error}") from None
        if len(found) != len(objects):
            observe(metrics.PARTIAL)
            raise refusal(f"returned {len(found)} objects, expected {len(objects)}")
        several = len(objects) > 1
        try:
            made = [checked(old, new, wanted, str(i) if several else "") for i, (old, new) in enumerate(zip(objects, found, strict=True))]
        except BadConversion as error:
            observe(metrics.INVALID)
            raise (StatusError(500, "", str(error)) if error.told else refusal(str(error))) from None
        observe()
        return made

    def _config(self) -> Object:
        """A CA bundle of white space is none here."""
        import base64
        import binascii

        bundle = self._declared.get("caBundle") or ""
        try:
            blank = not base64.b64decode(bundle).strip()
        except binascii.Error:
            blank = False
        return {**self._declared, "caBundle": ""} if blank else self._declared


__all__ = ["TIMEOUT", "WebhookConverter"]
