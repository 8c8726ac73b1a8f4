"""Conversion of custom resources by the conversion webhook of their definition.

Upstream calls the webhook once for each object of a list; this module calls it for up to `PORTION` objects.

Upstream: apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, webhookConverter.Convert.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from tetrapod.extensions.conversion import metrics
from tetrapod.extensions.conversion.review import BadConversion, checked, converted_objects, new_review
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.client_config import Unusable, client_config
from tetrapod.generic.webhook.responses import CallFailed
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.status import StatusError

TIMEOUT: Final = 30.0
PORTION: Final = 200
"""The maximum number of objects in one call. Encoding and checking more would block other requests for too long."""


class WebhookConverter:
    """The converter of the objects of one definition.

    Args:
        name: the name of the definition.
        conversion: its spec.conversion, with the strategy Webhook.
        group: the API group of the objects.
        kind: their kind.
        client: calls the webhook.
    """

    def __init__(self, name: str, group: str, kind: str, conversion: Object, client: WebhookClient) -> None:
        webhook = conversion.get("webhook") or {}
        self._name, self._group, self._kind, self._client = name, group, kind, client
        self._declared: Object = webhook.get("clientConfig") or {}
        self._versions: Sequence[str] = webhook.get("conversionReviewVersions") or ()

    async def convert(self, objects: Sequence[Object], version: str, *, large: bool = False) -> list[Object]:
        """Return the objects in `version`, in the same order.

        Objects that already have that version are not sent to the webhook and returned as they are. A converted object
        keeps the metadata of the original, except for labels and annotations, which the webhook may change.

        Args:
            objects: the objects.
            version: the name of the version.
            large: whether to encode and check the objects in a thread, because that would block the event loop.

        Raises:
            StatusError: 500, the webhook cannot be called or its response is invalid; with upstream's text and an empty
                reason.
        """
        target = GroupVersion(self._group, version)
        converted = list(objects)
        indexes = [i for i, obj in enumerate(converted) if obj.get("apiVersion") != str(target)]
        for start in range(0, len(indexes), PORTION):
            portion = indexes[start : start + PORTION]
            returned = await self._call([converted[i] for i in portion], target, large)
            for position, obj in zip(portion, returned, strict=True):
                converted[position] = obj
            await asyncio.sleep(0)
        return converted

    async def _call(self, objects: list[Object], requested: GroupVersion, large: bool) -> list[Object]:
        given = GroupVersion.parse(objects[0]["apiVersion"]).with_kind(self._kind)
        start = time.perf_counter()

        def observe(failure: str = "") -> None:
            metrics.observe(self._name, given.version, requested.version, time.perf_counter() - start, failure)

        def webhook_error(text: str) -> StatusError:
            return StatusError(500, "", f"conversion webhook for {given} {text}")

        try:
            sent = await offloaded(large, new_review, objects, str(requested), self._versions, large)
            review = await self._client.call(client_config(self._config()), sent.body, TIMEOUT, sent.expected)
        except BadConversion as error:
            raise StatusError(500, "", str(error)) from None
        except Unusable as error:
            raise StatusError(500, "", str(error)) from None
        except CallFailed as error:
            observe(metrics.CALL)
            raise webhook_error(f"failed: {error}") from None
        try:
            returned = converted_objects(sent, review)
        except BadConversion as error:
            observe(metrics.MALFORMED)
            raise webhook_error(f"failed: {error}") from None
        if len(returned) != len(objects):
            observe(metrics.PARTIAL)
            raise webhook_error(f"returned {len(returned)} objects, expected {len(objects)}")
        try:
            converted = await offloaded(large, _all_checked, objects, returned, requested)
        except BadConversion as error:
            observe(metrics.INVALID)
            raise (StatusError(500, "", str(error)) if error.complete else webhook_error(str(error))) from None
        observe()
        return converted

    def _config(self) -> Object:
        """Return the webhook's clientConfig, with an empty caBundle if it contains only white space."""
        import base64
        import binascii

        bundle = self._declared.get("caBundle") or ""
        try:
            blank = not base64.b64decode(bundle).strip()
        except binascii.Error:
            blank = False
        return {**self._declared, "caBundle": ""} if blank else self._declared


def _all_checked(objects: Sequence[Object], returned: Sequence[Any], requested: GroupVersion) -> list[Object]:
    multiple = len(objects) > 1
    return [
        checked(old, new, requested, str(i) if multiple else "")
        for i, (old, new) in enumerate(zip(objects, returned, strict=True))
    ]


__all__ = ["TIMEOUT", "WebhookConverter"]
