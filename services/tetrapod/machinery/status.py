"""`StatusError`, and a constructor for each of upstream's API errors.

Every error that reaches a client is a `StatusError`; the filter chain writes its `to_status()` as the body. Reason,
code, message and details are upstream's, but limited in length (error_limits.py).

Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tetrapod.machinery import error_limits
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.error_limits import MAX_ERRORS, MAX_MESSAGE, MAX_PATH, MAX_TEXT, cut, cut_path
from tetrapod.machinery.field import FieldError, shown
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupKind, GroupResource, Object


class StatusError(Exception):
    """An error response: HTTP code, reason, message and details.

    `details` of None means that the Status has no `details`. Handlers may add to `headers`, which the response gets,
    and to `metadata` of the Status.

    Attributes:
        code: the HTTP status code.
        reason: the reason of the Status, such as "NotFound"; "" leaves it out.
        message: the message, shortened to MAX_MESSAGE characters.
        details: the details of the Status, or None.
        metadata: the metadata of the Status, such as the continue token of an expired list.
        headers: names and values of further response headers.
    """

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        message = cut(message, MAX_MESSAGE)
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: Object = {}
        self.headers: list[tuple[bytes, bytes]] = []

    @property
    def retry_after(self) -> int:
        """Return the seconds after which the client should retry, or 0 if the details have none."""
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def to_status(self) -> Object:
        """Return the error as a Status object. Details beyond the limits of `error_limits.py` are shortened."""
        status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = _limited(self.details)
        status["code"] = self.code
        return status


def _limited(details: Object) -> Object:
    """Return the details of a Status, or a shortened copy if names or causes exceed the limits of `error_limits.py`."""
    for key in ("name", "group", "kind"):
        if len(details.get(key) or "") > MAX_PATH:
            details = {**details, key: cut_path(details[key])}
    causes = details.get("causes") or ()
    size = sum(map(_size, causes[: MAX_ERRORS + 1]))
    if len(causes) <= MAX_ERRORS + 1 and size <= 2 * MAX_TEXT:
        return details
    kept: list[Object] = []
    size = 0
    for cause in causes[:MAX_ERRORS]:
        size += _size(cause)
        if kept and size > MAX_TEXT:
            break
        kept.append({key: cut(text, MAX_TEXT) for key, text in cause.items()})
    return {**details, "causes": [*kept, {"message": error_limits.more(len(causes) - len(kept))}]}


def _size(cause: Object) -> int:
    return len(cause.get("message") or "") + len(cause.get("field") or "")


def _quoted(name: str) -> str:
    return go_quote(cut_path(name))


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


def method_not_allowed() -> StatusError:
    """Return a 405 for an HTTP method that a path does not support."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_found(resource: GroupResource, name: str) -> StatusError:
    """Return a 404 for an object that does not exist."""
    return StatusError(404, "NotFound", f"{resource} {_quoted(name)} not found", _details(*resource, name))


def already_exists(resource: GroupResource, name: str) -> StatusError:
    """Return a 409 with reason AlreadyExists, for a create whose name is taken."""
    return StatusError(409, "AlreadyExists", f"{resource} {_quoted(name)} already exists", _details(*resource, name))


def generate_name_conflict(resource: GroupResource, name: str, retry_after: int) -> StatusError:
    """Return a 409 with reason AlreadyExists, for a create whose generated names were all taken.

    Args:
        resource: the resource.
        name: the last generated name.
        retry_after: seconds after which the client should retry.
    """
    return StatusError(
        409,
        "AlreadyExists",
        f"{resource} {_quoted(name)} already exists, the server was not able to generate a unique name for the object",
        _details(*resource, name, retryAfterSeconds=retry_after),
    )


def unauthorized(message: str = "Unauthorized") -> StatusError:
    """Return a 401 for a request without valid credentials."""
    return StatusError(401, "Unauthorized", message)


def forbidden(resource: GroupResource, name: str, why: str) -> StatusError:
    """Return a 403. A resource without name and group, and an empty name, are left out; `why` ends the message."""
    if not (resource.resource or resource.group):
        message = f"forbidden: {why}"
    elif not name:
        message = f"{resource} is forbidden: {why}"
    else:
        message = f"{resource} {_quoted(name)} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, _details(*resource, name))


def conflict(resource: GroupResource, name: str, why: str) -> StatusError:
    """Return a 409 with reason Conflict, for a write that conflicts with the stored object; `why` ends the message."""
    message = f"Operation cannot be fulfilled on {resource} {_quoted(name)}: {why}"
    return StatusError(409, "Conflict", message, _details(*resource, name))


def apply_conflict(causes: Sequence[Object], message: str) -> StatusError:
    """Return a 409 with reason Conflict, for an apply that conflicts with other field managers.

    Args:
        causes: the causes of the Status, one for each field.
        message: the message, which lists the conflicts.
    """
    return StatusError(409, "Conflict", message, {"causes": list(causes)})


def gone(message: str) -> StatusError:
    """Return a 410 with reason Gone."""
    return StatusError(410, "Gone", message)


def resource_expired(message: str) -> StatusError:
    """Return a 410 with reason Expired, for a resource version or continue token that is too old."""
    return StatusError(410, "Expired", message)


def invalid(kind: GroupKind, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return a 422 for an object that is not valid.

    The message lists each distinct error once, in brackets if there are several; the causes list them all. Both are
    limited by `error_limits.py`.

    Args:
        kind: the kind of the object.
        name: the name of the object.
        errors: the errors.
    """
    listed, rest = shown(errors)
    causes: list[Object] = [{"reason": error.type, "message": body, "field": error.field} for error, body in listed]
    texts = list(dict.fromkeys(f"{error.field}: {body}" for error, body in listed))
    if rest:
        causes.append({"message": rest})
        texts.append(rest)
    text = aggregate_errors(texts)
    message = f"{kind} {_quoted(name)} is invalid: {text}" if texts else f"{kind} {_quoted(name)} is invalid"
    return StatusError(
        422, "Invalid", message, _details(*kind, name, causes=causes) if causes else _details(*kind, name)
    )


def bad_request(message: str) -> StatusError:
    """Return a 400 with reason BadRequest."""
    return StatusError(400, "BadRequest", message)


def too_many_requests(message: str, retry_after: int) -> StatusError:
    """Return a 429.

    Args:
        message: the message.
        retry_after: seconds after which the client should retry; 0 leaves them out.
    """
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after} if retry_after else None)


def service_unavailable(message: str, retry_after: int = 0) -> StatusError:
    """Return a 503.

    Args:
        message: the message.
        retry_after: seconds; 0 leaves them out. Set it only if the request has certainly had no effect, because
            client-go then repeats it for every method.
    """
    return StatusError(503, "ServiceUnavailable", message, {"retryAfterSeconds": retry_after} if retry_after else None)


def method_not_supported(resource: GroupResource, action: str) -> StatusError:
    """Return a 405 for a verb that a resource does not support. `action` is the verb that the message names."""
    message = f"{action} is not supported on resources of kind {go_quote(str(resource))}"
    return StatusError(405, "MethodNotAllowed", message, _details(*resource, ""))


def server_timeout(resource: GroupResource, operation: str, retry_after: int) -> StatusError:
    """Return a 500 with reason ServerTimeout, for an operation that the client should retry.

    Args:
        resource: the resource.
        operation: the verb, such as "list".
        retry_after: seconds after which the client should retry.
    """
    message = f"The {operation} operation against {resource} could not be completed at this time, please try again."
    return StatusError(500, "ServerTimeout", message, _details(*resource, operation, retryAfterSeconds=retry_after))


def timeout(message: str, retry_after: int = 0) -> StatusError:
    """Return a 504 with reason Timeout.

    Args:
        message: the message, which follows `Timeout: `.
        retry_after: seconds after which the client should retry; 0 leaves them out.
    """
    details = {"retryAfterSeconds": retry_after} if retry_after else {}
    return StatusError(504, "Timeout", f"Timeout: {message}", details)


def too_large_resource_version(message: str, retry_after: int) -> StatusError:
    """Return a 504 for a resourceVersion that the server has not reached.

    Args:
        message: the error's text.
        retry_after: seconds after which the client should retry; 0 leaves them out.

    Upstream: storage.NewTooLargeResourceVersionError
    """
    error = timeout(message, retry_after)
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    error.details = {"causes": [cause], **(error.details or {})}
    return error


def internal_error(message: str) -> StatusError:
    """Return a 500 with reason InternalError.

    The message follows `Internal error occurred: `, and is also the only cause.
    """
    text = f"Internal error occurred: {message}"
    return StatusError(500, "InternalError", text, {"causes": [{"message": message}]})


def request_entity_too_large(message: str) -> StatusError:
    """Return a 413. The message follows `Request entity too large: `."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def not_acceptable(message: str) -> StatusError:
    """Return a 406, for an Accept header that no response can satisfy."""
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(message: str) -> StatusError:
    """Return a 415, for the Content-Type of a body that the server cannot decode."""
    return StatusError(415, "UnsupportedMediaType", message)


def unknown_path() -> StatusError:
    """Return a 404 for a path whose version or resource is not served, in a group that is.

    Upstream: NewGenericServerResponse.
    """
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})
