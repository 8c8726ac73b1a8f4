"""Validation of Event.

Events of core/v1 without eventTime are validated leniently, as older clients expect; those with eventTime and those of
events.k8s.io strictly.

Upstream: pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE, qualified_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import (
    validate_kube_finalizers,
    validate_kube_object_meta,
    validate_object_meta_update,
)
from tetrapod.machinery.names import name_is_dns_subdomain

_LONGEST: Final = 128
_LONGEST_NOTE: Final = 1024
_TYPES: Final = frozenset({"Normal", "Warning"})


def validate(obj: Object, *, new_group: bool) -> list[FieldError]:
    """Validate a new Event, in its core/v1 form.

    In core/v1 only the rules of `_common` apply. In events.k8s.io the metadata is validated too, eventTime and a known
    type are required, a series has at least two events, and the deprecated fields must be unset.

    Args:
        new_group: whether the request uses events.k8s.io instead of core/v1.
    """
    errors = _common(obj, new_group=new_group)
    if not new_group:
        return errors
    errors += validate_kube_object_meta(obj["metadata"], True, name_is_dns_subdomain)
    errors += _series(obj)
    if not obj.get("eventTime"):
        errors.append(field.required("eventTime"))
    if (kind := obj.get("type") or "") not in _TYPES:
        errors.append(field.invalid("type", "", f"has invalid value: {kind}"))
    unset = [key for key in ("firstTimestamp", "lastTimestamp", "count") if obj.get(key)]
    if any((obj.get("source") or {}).values()):
        unset.append("source")
    return errors + [field.invalid(key, "", "needs to be unset") for key in unset]


def _common(obj: Object, *, new_group: bool) -> list[FieldError]:
    """Validate the rules that apply to requests of both API groups.

    The namespace must fit that of the involved object. With eventTime, the reporting controller, its instance, action
    and reason are required and not too long, and neither is the message. Objects have the core/v1 form, so the fields
    in errors have its names. As upstream, only reportingController has its events.k8s.io name.

    Args:
        new_group: whether the request uses events.k8s.io instead of core/v1.
    """
    namespace, involved_namespace = (
        obj["metadata"].get("namespace") or "",
        (obj.get("involvedObject") or {}).get("namespace") or "",
    )
    errors: list[FieldError] = []
    default_namespaces = ("", "default", "kube-system") if obj.get("eventTime") else ("", "default")
    if (
        namespace not in default_namespaces
        if not involved_namespace
        else namespace != involved_namespace and not obj.get("eventTime")
    ):
        errors.append(field.invalid("involvedObject.namespace", involved_namespace, "does not match event.namespace"))
    if not obj.get("eventTime"):
        return errors
    controller, path = obj.get("reportingComponent") or "", "reportingController" if new_group else "reportingComponent"
    if not controller:
        errors.append(field.required(path))
    errors += qualified_name(controller, path)
    for key in ("reportingInstance", "action", "reason"):
        value = obj.get(key) or ""
        if not value:
            errors.append(field.required(key))
        if len(value) > _LONGEST:
            errors.append(field.invalid(key, "", f"can have at most {_LONGEST} characters"))
    if len(obj.get("message") or "") > _LONGEST_NOTE:
        errors.append(field.invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
    return errors


def _series(obj: Object) -> list[FieldError]:
    series = obj.get("series")
    if series is None:
        return []
    errors: list[FieldError] = []
    if (series.get("count") or 0) < 2:
        errors.append(field.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(field.required("series.lastObservedTime"))
    return errors


def validate_update(new: Object, old: Object, *, new_group: bool) -> list[FieldError]:
    """Validate an updated Event, in its core/v1 form.

    The rules of `_common` apply. In events.k8s.io all fields but the series and the metadata are immutable.

    Args:
        new_group: whether the request uses events.k8s.io, where most fields are immutable, instead of core/v1.
    """
    errors = _common(new, new_group=new_group)
    if not new_group:
        return errors
    meta = new["metadata"]
    errors += validate_object_meta_update(meta, old["metadata"])
    errors += validate_kube_finalizers(meta.get("finalizers") or [], "metadata.finalizers")
    if new.get("series") != old.get("series"):
        errors += _series(new)
    if _reference(new, "involvedObject") != _reference(old, "involvedObject"):
        errors.append(field.invalid("involvedObject", _reference(new, "involvedObject"), IMMUTABLE))
    for key in ("reason", "message"):
        errors += _fixed(new, old, key, "")
    if (new.get("source") or {}) != (old.get("source") or {}):
        source = new.get("source") or {}
        shown = {"Component": source.get("component") or "", "Host": source.get("host") or ""}
        errors.append(field.invalid("source", shown, IMMUTABLE))
    for key in ("firstTimestamp", "lastTimestamp"):
        errors += _fixed(new, old, key, None)
    errors += _fixed(new, old, "count", 0) + _fixed(new, old, "type", "") + _fixed(new, old, "eventTime", None)
    errors += _fixed(new, old, "action", "")
    if new.get("related") != old.get("related"):
        errors.append(
            field.invalid("related", _reference(new, "related") if new.get("related") is not None else None, IMMUTABLE)
        )
    if (new.get("reportingComponent") or "") != (old.get("reportingComponent") or ""):
        errors.append(field.invalid("reportingController", new.get("reportingComponent") or "", IMMUTABLE))
    return errors + _fixed(new, old, "reportingInstance", "")


def _reference(obj: Object, key: str) -> Object:
    return internal("ObjectReference", obj.get(key) or {})


def _fixed(new: Object, old: Object, key: str, zero: object) -> list[FieldError]:
    value = new.get(key) or zero
    return [] if value == (old.get(key) or zero) else [field.invalid(key, value, IMMUTABLE)]
