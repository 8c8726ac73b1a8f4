"""AdmissionReview: the request to a webhook and the evaluation of its response.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go,
plugin/webhook/errors/statuserror.go
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.request import describe
from tetrapod.generic.webhook.responses import SUPPORTED, Review, supported_version
from tetrapod.generic.webhook.review_schemas import expected_admission
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.json_pieces import dumps
from tetrapod.machinery.serializer.json import ordered
from tetrapod.machinery.status import StatusError

MIN_REJECTION_CODE: Final = 400


class InvalidResponse(Exception):
    """The response does not fit the request; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The evaluated response of a webhook.

    Attributes:
        allowed: whether the webhook admits the request.
        patch: the JSON text of the patch, decoded from base64; empty without one, or if the webhook is validating.
        patch_type: "JSONPatch", or "" without a patch.
        status: the Status of a rejection; None if the response has none.
        audit_annotations: annotations of the audit event, without the webhook's name as prefix.
        warnings: the texts of Warning headers.
    """

    allowed: bool
    patch: bytes
    patch_type: str
    status: Object | None
    audit_annotations: Mapping[str, str]
    warnings: Sequence[str]


def new_review(
    attributes: Attributes, matched_kind: Equivalent, versions: Sequence[str], new: Object | None, old: Object | None
) -> Review:
    """Return the AdmissionReview request for a webhook.

    Args:
        attributes: the request.
        matched_kind: the resource and kind under which the webhook matched the request.
        versions: the admissionReviewVersions of the webhook.
        new: the new object, converted to `matched_kind`; None for a deletion.
        old: the stored object, converted to `matched_kind`; None for a creation.

    Raises:
        InvalidResponse: the webhook supports none of our versions of AdmissionReview.
    """
    version = supported_version(versions)
    if version is None:
        raise InvalidResponse(f"webhook does not accept known AdmissionReview versions ({', '.join(SUPPORTED)})")
    uid = str(uuid.uuid4())
    request = describe(attributes, matched_kind, uid)
    request["object"] = None if new is None else ordered(new)
    request["oldObject"] = None if old is None else ordered(old)
    request["dryRun"] = attributes.dry_run
    request["options"] = attributes.options or None
    review = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
    body = dumps(review) if attributes.large else orjson.dumps(review)
    return Review(uid, version, body, expected_admission(version))


def verdict(request: Review, review: Object, *, mutating: bool) -> Verdict:
    """Evaluate the AdmissionReview `review`, with which a webhook responded to `request`.

    Args:
        request: the request that was sent.
        review: the decoded response.
        mutating: whether the webhook may return a patch. If not, a patch is an error in v1 and ignored in v1beta1.

    Raises:
        InvalidResponse: the response is malformed or belongs to another request.
    """
    response: Any = review.get("response")
    if response is None:
        raise InvalidResponse("webhook response was absent")
    patch, patch_type = base64.b64decode(response.get("patch") or ""), response.get("patchType")
    if request.version == "v1":
        _check(request, review, response)
        patch_type = _checked_patch_type(patch, patch_type) if mutating else _no_patch(patch, patch_type)
    else:  # v1beta1 does not require these fields
        patch_type = "JSONPatch" if patch and mutating else ""
    return Verdict(
        bool(response.get("allowed")),
        patch if mutating else b"",
        patch_type,
        response.get("status"),
        response.get("auditAnnotations") or {},
        response.get("warnings") or (),
    )


def _check(request: Review, review: Object, response: Object) -> None:
    uid = response.get("uid") or ""
    if uid != request.uid:
        raise InvalidResponse(f"expected response.uid={go_quote(request.uid)}, got {go_quote(uid)}")
    wanted = GroupVersionKind("admission.k8s.io", request.version, "AdmissionReview")
    actual = GroupVersion.parse(review.get("apiVersion") or "").with_kind(review.get("kind") or "")
    if actual != wanted:
        raise InvalidResponse(f"expected webhook response of {wanted}, got {actual}")


def _checked_patch_type(patch: bytes, patch_type: str | None) -> str:
    if patch and patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise InvalidResponse('webhook returned invalid response.patchType of ""')
    return patch_type or ""


def _no_patch(patch: bytes, patch_type: str | None) -> str:
    if patch:
        raise InvalidResponse("validating webhook may not return response.patch")
    if patch_type is not None:
        raise InvalidResponse("validating webhook may not return response.patchType")
    return ""


class Denied(StatusError):
    """The rejection of a request by a webhook, with the fields of the Status that it returned.

    Args:
        name: the name of the webhook.
        status: the Status in its response, which may be None.
    """

    def __init__(self, name: str, status: Object | None) -> None:
        details = status or {}
        reason, explanation = details.get("reason") or "", details.get("message") or details.get("reason") or ""
        by = f"admission webhook {go_quote(name)} denied the request"
        message = f"{by}: {explanation}" if explanation else f"{by} without explanation"
        super().__init__(max(details.get("code") or 0, MIN_REJECTION_CODE), reason, message, details.get("details"))
        self.metadata = details.get("metadata") or {}
        self._status = details.get("status") or "Failure"

    def to_status(self) -> Object:
        status = super().to_status()
        status["status"] = "Failure" if self._status == "Success" else self._status
        return status
