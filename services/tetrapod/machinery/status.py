"""`StatusError` and a constructor for each of upstream's API errors.

Every refusal that reaches a client is a `StatusError`; the HTTP front writes its `to_status()` as the body.
Follows k8s.io/apimachinery/pkg/api/errors/errors.go: reason, code, message and details are those texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tetrapod.machinery.field import FieldError, go_quote
from tetrapod.machinery.gvk import GroupKind, GroupResource, Object


class StatusError(Exception):
    """A refusal with its HTTP code, reason, message and details (None leaves `details` out)."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: Object = {}  # `continue` of an expired list
        self.headers: list[tuple[bytes, bytes]] = []

    @property
    def retry_after(self) -> int:
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def to_status(self) -> Object:
        status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def _details(group: str, kind: str, name: str, **more: Any) -> Object:
    details: Object = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details.update(more)
    return details


def not_found(resource: GroupResource, name: str) -> StatusError:
    return StatusError(404, "NotFound", f"{resource} {go_quote(name)} not found", _details(*resource, name))


def already_exists(resource: GroupResource, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f"{resource} {go_quote(name)} already exists", _details(*resource, name))


def generate_name_conflict(resource: GroupResource, name: str, retry_after: int) -> StatusError:
    return StatusError(
        409,
        "AlreadyExists",
        f"{resource} {go_quote(name)} already exists, the server was not able to generate a unique name for the object",
        _details(*resource, name, retryAfterSeconds=retry_after),
    )


def unauthorized(message: str = "Unauthorized") -> StatusError:
    return StatusError(401, "Unauthorized", message)


def forbidden(resource: GroupResource, name: str, why: str) -> StatusError:
    if not resource.resource:
        message = f"forbidden: {why}"
    elif not name:
        message = f"{resource} is forbidden: {why}"
    else:
        message = f"{resource} {go_quote(name)} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, _details(*resource, name))


def conflict(resource: GroupResource, name: str, why: str) -> StatusError:
    message = f"Operation cannot be fulfilled on {resource} {go_quote(name)}: {why}"
    return StatusError(409, "Conflict", message, _details(*resource, name))


def apply_conflict(causes: Sequence[Object], message: str) -> StatusError:
    return StatusError(409, "Conflict", message, {"causes": list(causes)})


def gone(message: str) -> StatusError:
    return StatusError(410, "Gone", message)


def resource_expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def invalid(kind: GroupKind, name: str, errors: Sequence[FieldError]) -> StatusError:
    """A 422; the message lists each distinct error once, in brackets where there are several."""
    causes = [{"reason": e.type, "message": e.body(), "field": e.field} for e in errors]
    texts = list(dict.fromkeys(str(e) for e in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f"{kind} {go_quote(name)} is invalid: {listed}" if texts else f"{kind} {go_quote(name)} is invalid"
    return StatusError(422, "Invalid", message, _details(*kind, name, causes=causes) if causes else _details(*kind, name))


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def too_many_requests(message: str, retry_after: int) -> StatusError:
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after} if retry_after else {})


def service_unavailable(message: str, retry_after: int = 0) -> StatusError:
    """`retry_after` is for what has certainly not been done: client-go repeats such a request whatever its method."""
    return StatusError(503, "ServiceUnavailable", message, {"retryAfterSeconds": retry_after} if retry_after else {})


def method_not_supported(resource: GroupResource, action: str) -> StatusError:
    message = f"{action} is not supported on resources of kind {go_quote(str(resource))}"
    return StatusError(405, "MethodNotAllowed", message, _details(*resource, ""))


def server_timeout(resource: GroupResource, operation: str, retry_after: int) -> StatusError:
    message = f"The {operation} operation against {resource} could not be completed at this time, please try again."
    return StatusError(500, "ServerTimeout", message, _details(*resource, operation, retryAfterSeconds=retry_after))


def timeout(message: str, retry_after: int = 0) -> StatusError:
    details = {"retryAfterSeconds": retry_after} if retry_after else {}
    return StatusError(504, "Timeout", f"Timeout: {message}", details)


def internal_error(message: str) -> StatusError:
    text = f"Internal error occurred: {message}"
    return StatusError(500, "InternalError", text, {"causes": [{"message": message}]})


def request_entity_too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def not_acceptable(message: str) -> StatusError:
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def unknown_path() -> StatusError:
    """No such version or resource in a group that is served (upstream: NewGenericServerResponse)."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})
