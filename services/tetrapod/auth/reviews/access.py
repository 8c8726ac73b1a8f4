"""SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectAccessReview: queries to the authorizer through the API.

The objects are not stored. The texts of validation errors name no kind, because upstream's internal objects have none.

Upstream: pkg/registry/authorization/{subjectaccessreview,localsubjectaccessreview,selfsubjectaccessreview,util}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.auth.reviews.selectors import parse_field_selector, parse_label_selector, validate_selectors
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Authorizer, Decision
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery import field, go_structs
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.status import StatusError, bad_request, invalid
from tetrapod.machinery.user import UserInfo

GROUP: Final = "authorization.k8s.io"
_ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_ATTRIBUTES_PATH: Final = "spec.resourceAttributes"


class SubjectAccessReviews(Rest):
    """The resource `subjectaccessreviews`: asks the authorizer about the user in the submitted review."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        spec = _spec_of(obj)
        await offloaded(ctx.large, _reject_invalid, obj, validate_subject_spec)
        if validate is not None:
            await validate(obj)
        return await with_status(self._authorizer, ctx, obj, user_of(spec))


class LocalSubjectAccessReviews(Rest):
    """The resource `localsubjectaccessreviews`: a SubjectAccessReview for the namespace of the request.

    It can be granted to administrators of a namespace.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        meta: Object = obj.get("metadata") or {}
        obj["metadata"] = meta
        if not meta.get("namespace"):
            meta["namespace"] = ctx.namespace
        if meta["namespace"] != ctx.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        spec = _spec_of(obj)
        await offloaded(ctx.large, self._reject_invalid, obj)
        if validate is not None:
            await validate(obj)
        return await with_status(self._authorizer, ctx, obj, user_of(spec))

    def _reject_invalid(self, obj: Object) -> None:
        spec = obj["spec"]
        errors = validate_subject_spec(spec) + metadata_errors(obj, local=True)
        _reject(errors + self._namespace_errors(spec, obj["metadata"]["namespace"]))

    def _namespace_errors(self, spec: Object, namespace: str) -> list[FieldError]:
        errors = []
        attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if attributes is not None and (attributes.get("namespace") or "") != namespace:
            where = f"{_ATTRIBUTES_PATH}.namespace"
            errors.append(field.invalid(where, attributes.get("namespace") or "", "must match metadata.namespace"))
        if path is not None:
            errors.append(
                field.invalid("spec.nonResourceAttributes", _internal(path), "disallowed on this kind of request")
            )
        return errors


class SelfSubjectAccessReviews(Rest):
    """The resource `selfsubjectaccessreviews`: asks the authorizer about the requesting user."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        _spec_of(obj)
        await offloaded(ctx.large, _reject_invalid, obj, validate_attributes)
        if validate is not None:
            await validate(obj)
        return await with_status(self._authorizer, ctx, obj, ctx.user)


async def with_status(authorizer: Authorizer, ctx: Context, obj: Object, user: UserInfo) -> Object:
    """Ask the authorizer about the review, and return a copy of the review with its status.

    Errors of the evaluation, and selectors that could not be parsed, are in `status.evaluationError`.

    Args:
        obj: the validated review.
        user: the user to ask about.

    Raises:
        StatusError: 503, a service that the decision depends on is unavailable.
    """
    attributes, errors = await offloaded(ctx.large, attributes_of, obj["spec"], user)
    result = await authorizer.authorize(attributes)
    return {**obj, "status": _status(result, errors)}


def _status(result: AuthorizationResult, errors: list[str]) -> Object:
    status: Object = {"allowed": result.decision is Decision.ALLOW}
    if result.decision is Decision.DENY:
        status["denied"] = True
    if result.reason:
        status["reason"] = result.reason
    if errors_shown := [text for text in (result.error, *errors) if text]:
        status["evaluationError"] = "; ".join(errors_shown)
    return status


def attributes_of(spec: Object, user: UserInfo) -> tuple[Attributes, list[str]]:
    """Return the attributes that a review asks about, and the error texts of selectors that could not be parsed.

    Args:
        spec: the validated spec of the review.
        user: the user to ask about.
    """
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user, path.get("verb") or "", path=path.get("path") or ""), []
    fields = parse_field_selector(resource.get("fieldSelector"), f"{_ATTRIBUTES_PATH}.fieldSelector")
    labels = parse_label_selector(resource.get("labelSelector"), f"{_ATTRIBUTES_PATH}.labelSelector")
    texts = {
        key: resource.get(key) or ""
        for key in ("verb", "namespace", "group", "version", "resource", "subresource", "name")
    }
    texts["version"] = texts["version"] or "*"
    attributes = Attributes(
        user,
        resource_request=True,
        field_requirements=fields.requirements,
        label_requirements=labels.requirements,
        **texts,
    )
    return attributes, [error for error in (fields.error, labels.error) if error]


def user_of(spec: Object) -> UserInfo:
    """Return the user that the spec of a SubjectAccessReview names."""
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _reject_invalid(obj: Object, validate_spec: Callable[[Object], list[FieldError]]) -> None:
    """Raise a StatusError 422 if the spec or the metadata of a review is invalid.

    Args:
        obj: the review.
        validate_spec: returns the errors of the spec, with which it is called.
    """
    _reject(validate_spec(obj["spec"]) + metadata_errors(obj))


def validate_attributes(spec: Object) -> list[FieldError]:
    """Return the errors of the attributes that a review asks about.

    A review has either resourceAttributes or nonResourceAttributes. Field and label selectors are valid.

    Args:
        spec: the spec of the review.
    """
    return _one_of_errors(spec) + _selector_errors(spec)


def validate_subject_spec(spec: Object) -> list[FieldError]:
    """Return the errors of the spec of a SubjectAccessReview or LocalSubjectAccessReview.

    The rules are those of `validate_attributes`, and a user or groups must be set.
    """
    errors = _one_of_errors(spec)
    if not spec.get("user") and not spec.get("groups"):
        errors.append(
            field.invalid("spec.user", spec.get("user") or "", "at least one of user or group must be specified")
        )
    return errors + _selector_errors(spec)


def _one_of_errors(spec: Object) -> list[FieldError]:
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (attributes is None) is not (path is None):
        return []
    return [field.invalid("spec", None if path is None else _internal(path), _ONE_OF)]


def _selector_errors(spec: Object) -> list[FieldError]:
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        return []
    with field.limited():
        return validate_selectors(attributes, _ATTRIBUTES_PATH)


def _internal(path: Object) -> Object:
    """Return nonResourceAttributes with the Go field names of upstream's internal struct, which errors print.

    Args:
        path: the nonResourceAttributes: the path and the verb.
    """
    return {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}


_ENTRY_ORDER: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")


def metadata_errors(obj: Object, *, local: bool = False) -> list[FieldError]:
    """Return an error if a review has metadata, else []. managedFields are ignored.

    Args:
        local: whether the review may have a namespace.
    """
    shown = _ordered(obj.get("metadata") or {})
    ignored = {"managedFields", "namespace"} if local else {"managedFields"}
    if not shown.keys() - ignored:
        return []
    text = "must be empty except for namespace" if local else "must be empty"
    return [field.invalid("metadata", shown, text)]


def _ordered(meta: Object) -> Object:
    """Return the metadata without empty fields, in the order of Go's structs, as the error text shows it."""
    shown = go_structs.metadata(meta)
    if entries := meta.get("managedFields"):
        shown["managedFields"] = [{key: entry[key] for key in _ENTRY_ORDER if key in entry} for entry in entries]
    return shown


def _spec_of(obj: Object) -> Object:
    spec: Object = obj.get("spec") or {}
    obj["spec"] = spec
    return spec


def _reject(errors: list[FieldError]) -> None:
    if errors:
        raise _invalid(errors)


def _invalid(errors: list[FieldError]) -> StatusError:
    return invalid(GroupKind(GROUP, ""), "", errors)
