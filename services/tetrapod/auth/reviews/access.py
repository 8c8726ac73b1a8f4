"""SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectAccessReview: questions to the authorizer, over the API.

Follows pkg/registry/authorization/{subjectaccessreview,localsubjectaccessreview,selfsubjectaccessreview,util}. The objects are
not stored; what a refusal says names no kind, as upstream's internal ones have none.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.auth.reviews.selectors import understand_field_selector, understand_label_selector, validate_selectors
from tetrapod.generic.authorization.interface import Answer, Attributes, Authorizer, Decision
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.user import UserInfo
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.status import StatusError, bad_request, invalid

GROUP: Final = "authorization.k8s.io"
_ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_ATTRIBUTES_PATH: Final = "spec.resourceAttributes"


class SubjectAccessReviews(Rest):
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        spec = _spec_of(obj)
        _refuse(validate_subject_spec(spec) + metadata_errors(obj))
        if validate is not None:
            await validate(obj)
        return await answered(self._authorizer, obj, user_of(spec))


class LocalSubjectAccessReviews(Rest):
    """The same for one namespace, so that its administrators may ask."""

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
        _refuse(validate_subject_spec(spec) + metadata_errors(obj, local=True) + self._namespace_errors(spec, meta["namespace"]))
        if validate is not None:
            await validate(obj)
        return await answered(self._authorizer, obj, user_of(spec))

    def _namespace_errors(self, spec: Object, namespace: str) -> list[FieldError]:
        errors = []
        attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if attributes is not None and (attributes.get("namespace") or "") != namespace:
            where = f"{_ATTRIBUTES_PATH}.namespace"
            errors.append(field.invalid(where, attributes.get("namespace") or "", "must match metadata.namespace"))
        if path is not None:
            errors.append(field.invalid("spec.nonResourceAttributes", _internal(path), "disallowed on this kind of request"))
        return errors


class SelfSubjectAccessReviews(Rest):
    """About whoever asks."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        spec = _spec_of(obj)
        _refuse(_one_of_errors(spec) + _selector_errors(spec) + metadata_errors(obj))
        if validate is not None:
            await validate(obj)
        return await answered(self._authorizer, obj, ctx.user)


async def answered(authorizer: Authorizer, obj: Object, user: UserInfo) -> Object:
    """The review with its status."""
    attributes, errors = attributes_of(obj["spec"], user)
    answer = await authorizer.authorize(attributes)
    return {**obj, "status": _status(answer, errors)}


def _status(answer: Answer, errors: list[str]) -> Object:
    status: Object = {"allowed": answer.decision is Decision.ALLOW}
    if answer.decision is Decision.DENY:
        status["denied"] = True
    if answer.reason:
        status["reason"] = answer.reason
    if told := [text for text in (answer.error, *errors) if text]:
        status["evaluationError"] = "; ".join(told)
    return status


def attributes_of(spec: Object, user: UserInfo) -> tuple[Attributes, list[str]]:
    """What is asked, and why not all of it could be understood."""
    asked = spec.get("resourceAttributes")
    if asked is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user, path.get("verb") or "", path=path.get("path") or ""), []
    fields = understand_field_selector(asked.get("fieldSelector"), f"{_ATTRIBUTES_PATH}.fieldSelector")
    labels = understand_label_selector(asked.get("labelSelector"), f"{_ATTRIBUTES_PATH}.labelSelector")
    texts = {key: asked.get(key) or "" for key in ("verb", "namespace", "group", "version", "resource", "subresource", "name")}
    texts["version"] = texts["version"] or "*"
    attributes = Attributes(
        user, resource_request=True, field_requirements=fields.requirements, label_requirements=labels.requirements, **texts
    )
    return attributes, [error for error in (fields.error, labels.error) if error]


def user_of(spec: Object) -> UserInfo:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def validate_subject_spec(spec: Object) -> list[FieldError]:
    errors = _one_of_errors(spec)
    if not spec.get("user") and not spec.get("groups"):
        errors.append(field.invalid("spec.user", spec.get("user") or "", "at least one of user or group must be specified"))
    return errors + _selector_errors(spec)


def _one_of_errors(spec: Object) -> list[FieldError]:
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (attributes is None) is not (path is None):
        return []
    return [field.invalid("spec", None if path is None else _internal(path), _ONE_OF)]


def _selector_errors(spec: Object) -> list[FieldError]:
    attributes = spec.get("resourceAttributes")
    return [] if attributes is None else validate_selectors(attributes, _ATTRIBUTES_PATH)


def _internal(path: Object) -> Object:
    """nonResourceAttributes as upstream prints its internal form, which has no JSON names."""
    return {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}


_META_ORDER: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields"),
)
_ENTRY_ORDER: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")


def metadata_errors(obj: Object, *, local: bool = False) -> list[FieldError]:
    """A review has no metadata of its own, but for a local one's namespace."""
    meta: Object = obj.get("metadata") or {}
    ignored = ("managedFields", "namespace") if local else ("managedFields",)
    if not any(value not in (None, "", [], {}, 0) for key, value in meta.items() if key not in ignored):
        return []
    text = "must be empty except for namespace" if local else "must be empty"
    return [field.invalid("metadata", _ordered(meta), text)]


def _ordered(meta: Object) -> Object:
    """Metadata with its keys in Go's order, for the text shows it whole."""
    shown = {key: meta[key] for key in _META_ORDER if meta.get(key) not in (None, "", [], {}, 0)}
    if "managedFields" in shown:
        shown["managedFields"] = [{key: entry[key] for key in _ENTRY_ORDER if key in entry} for entry in shown["managedFields"]]
    return shown


def _spec_of(obj: Object) -> Object:
    spec: Object = obj.get("spec") or {}
    obj["spec"] = spec
    return spec


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        raise _invalid(errors)


def _invalid(errors: list[FieldError]) -> StatusError:
    return invalid(GroupKind(GROUP, ""), "", errors)
