"""ImagePolicyWebhook, off by default: asks a webhook whether the images of a pod may run and caches its responses.

Upstream: plugin/pkg/admission/imagepolicy.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from functools import cache
from typing import Final

import orjson

from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.core.admission.unversioned import read_unversioned
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.authentication.tokencache import ExpiringCache
from tetrapod.generic.configuration.schemas import boolean, integer, kind, map_of, raw, string, struct
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.webhook.kubeconfig import Target, read_kubeconfig
from tetrapod.generic.webhook.responses import Expected
from tetrapod.generic.webhook.review_client import Backoff, ReviewClient, ReviewFailed, create
from tetrapod.machinery.golang.durations import format_nanoseconds
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_qualified_name
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

API_VERSION: Final = "imagepolicy.k8s.io/v1alpha1"
AUDIT_PREFIX: Final = "imagepolicywebhook.image-policy.k8s.io/"
_CACHED: Final = 1024
_SECOND, _MILLISECOND, _MINUTE = 1_000_000_000, 1_000_000, 60_000_000_000


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """The configuration of the plugin.

    Attributes:
        target: the webhook, as its kubeconfig names it.
        allow_ttl: seconds to cache a response that allows a pod.
        deny_ttl: seconds to cache a response that denies a pod.
        backoff: delays between retries.
        default_allow: whether to allow pods if the webhook fails.
    """

    target: Target
    allow_ttl: float
    deny_ttl: float
    backoff: Backoff
    default_allow: bool


def read_policy(data: bytes | None) -> ImagePolicy:
    """Return the policy of the plugin's configuration file.

    Raises:
        ValueError: the file is missing (`data` is None) or invalid; the text is upstream's.
    """
    if data is None:
        raise ValueError("no config specified")
    config = read_unversioned(data, _config_shape()).get("imagePolicy") or {}
    retry = _nanoseconds(config.get("retryBackoff") or 0, _MILLISECOND, (1, 5 * _MINUTE), _SECOND // 2)
    allow = _nanoseconds(config.get("allowTTL") or 0, _SECOND, (_SECOND, 30 * _MINUTE), 5 * _MINUTE)
    deny = _nanoseconds(config.get("denyTTL") or 0, _SECOND, (_SECOND, 30 * _MINUTE), 30 * _SECOND)
    target = read_kubeconfig(config.get("kubeConfigFile") or "")
    return ImagePolicy(target, allow / 1e9, deny / 1e9, Backoff(initial=retry / 1e9), bool(config.get("defaultAllow")))


def _nanoseconds(value: int, unit: int, within: tuple[int, int], default: int) -> int:
    """Convert a configured duration to nanoseconds: -1 (off) becomes 0, and 0 (unset) becomes `default`.

    Args:
        value: the duration in units of `unit`.
        unit: nanoseconds in one unit of `value`.
        within: the smallest and the largest allowed duration, in nanoseconds.
        default: nanoseconds.

    Raises:
        ValueError: the duration is out of bounds.
    """
    if value in (-1, 0):
        return default if value == 0 else 0
    minimum, maximum = within
    if not minimum <= value * unit <= maximum:
        bounds = f"{format_nanoseconds(minimum)} and {format_nanoseconds(maximum)}"
        raise ValueError(f"valid value is between {bounds}, got {format_nanoseconds(value * unit)}")
    return value * unit


class ImagePolicyWebhook(Plugin):
    """The plugin that asks the webhook whether the images of a pod may run.

    It handles created and updated pods, and updates of their ephemeral containers.
    """

    name = "ImagePolicyWebhook"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, policy: ImagePolicy, pool: BackendPool) -> None:
        self._policy = policy
        self._client = ReviewClient(policy.target, pool, Expected(API_VERSION, "ImageReview", _review_shape))
        self._known = ExpiringCache[bytes, Object](math.inf, limit=_CACHED)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource) == ("", "pods") and attributes.subresource in ("", "ephemeralcontainers")

    async def validate(self, attributes: Attributes) -> None:
        spec = await offloaded(attributes.large, _review_spec, object_of(attributes), attributes)
        key = await offloaded(attributes.large, orjson.dumps, spec, option=orjson.OPT_SORT_KEYS)
        status = self._known.get(key)
        if status is None:
            try:
                status = await self._ask(spec)
            except ReviewFailed as error:
                self._failed(attributes, error)
                return
            self._known.put(key, status, self._policy.allow_ttl if status.get("allowed") else self._policy.deny_ttl)
        for name, value in (status.get("auditAnnotations") or {}).items():
            _annotate(attributes, f"{AUDIT_PREFIX}{name}", value)
        if not status.get("allowed"):
            reason = status.get("reason") or ""
            message = (
                f"image policy webhook backend denied one or more images: {reason}"
                if reason
                else "one or more images rejected by webhook backend"
            )
            raise forbidden(attributes, message)

    async def _ask(self, spec: Object) -> Object:
        """Post an ImageReview with this spec and return the status of the response.

        Args:
            spec: the spec of the ImageReview.

        Raises:
            ReviewFailed: the webhook did not respond, after the configured retries, or its response is invalid.
        """
        review = {
            "kind": "ImageReview",
            "apiVersion": API_VERSION,
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
        status: Object = (await create(self._client, review, self._policy.backoff)).get("status") or {}
        return status

    def _failed(self, attributes: Attributes, error: ReviewFailed) -> None:
        """Decide about a pod after the webhook failed: allow it with `defaultAllow`, and reject it otherwise.

        An allowed pod gets the audit annotation `failed-open`. Upstream also sets an annotation on the pod, which has
        no effect, because validating plugins get a copy.

        Args:
            attributes: the request, which gets the audit annotation.
            error: the failure, whose text a rejection contains.

        Raises:
            StatusError: 403, the plugin's configuration does not have `defaultAllow`.
        """
        log.debug("error contacting webhook backend: %s", error)
        if not self._policy.default_allow:
            raise _rejection(error) if error.code == 403 else forbidden(attributes, str(error))
        attributes.annotate(f"{AUDIT_PREFIX}failed-open", "true")


def _rejection(error: ReviewFailed) -> StatusError:
    """Return the error for a webhook that responded with 403 to the POST itself, with its text unchanged."""
    causes = [{"reason": "UnexpectedServerResponse", "message": str(error)}]
    return StatusError(403, "Forbidden", str(error), {"causes": causes})


def _review_spec(pod: Object, attributes: Attributes) -> Object:
    """Return the spec of an ImageReview about the pod: images, `*.image-policy.k8s.io/*` annotations and namespace.

    A request for the subresource asks only about ephemeral containers, others about containers and init containers.
    Empty fields are left out.
    """
    spec = pod.get("spec") or {}
    kinds = ("ephemeralContainers",) if attributes.subresource else ("containers", "initContainers")
    images = [
        {"image": image} if (image := container.get("image")) else {}
        for field_name in kinds
        for container in spec.get(field_name) or ()
    ]
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    review_spec = {
        "containers": images,
        "annotations": {k: v for k, v in sorted(annotations.items()) if ".image-policy.k8s.io/" in k},
    }
    return {name: value for name, value in {**review_spec, "namespace": attributes.namespace}.items() if value}


def _annotate(attributes: Attributes, key: str, value: str) -> None:
    """Add an audit annotation from the webhook's response; log a warning and ignore it if its key is invalid."""
    if key.count("/") != 1 or is_qualified_name(key):
        log.warning("failed to set admission audit annotation %s to %s: annotation key has invalid format", key, value)
        return
    attributes.annotate(key, value)


def _config_shape() -> SchemaNode:
    durations = {name: integer("time.Duration") for name in ("allowTTL", "denyTTL", "retryBackoff")}
    policy = struct(
        "imagepolicy.imagePolicyWebhookConfig", kubeConfigFile=string(), **durations, defaultAllow=boolean()
    )
    return struct("imagepolicy.AdmissionConfig", imagePolicy=policy)


@cache
def _review_shape() -> SchemaNode:
    status = struct("v1alpha1.ImageReviewStatus", allowed=boolean(), reason=string(), auditAnnotations=map_of(string()))
    return kind("v1alpha1.ImageReview", metadata=raw(), spec=raw(), status=status)
